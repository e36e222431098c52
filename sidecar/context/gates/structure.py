"""Finds what a prompt contains besides words: file names, identifiers, code, stack traces, log lines, parts
of a diff.

Works the same in every language. Knows nothing of gates; its own lists (`words/common.json`) are of file
extensions and names. A prompt may be a pasted megabyte: only its two ends are read, lines only at their
beginning, and no expression nests repetitions, so a hostile prompt costs no more than a long one.
"""

from __future__ import annotations

import functools
import os
import re

import msgspec

from ...text.folding import WIDE
from ..phrases.files import read_words
from ..phrases.rules import MARKS, ends, is_in_phrases

MAX_CHARACTERS_READ = 8_000
"""Characters from either end. The question is before or after pasted text, not in the middle of it."""

MAX_LINE_READ = 400
MAX_LINES = 400
"""Characters per line, and lines: a line of a stack trace is shorter, and its first lines identify it."""

_NAME = rf"[^\W{WIDE}\u1100-\u11ff\uac00-\ud7af]"
_RUN = re.compile(rf"(?:{_NAME}|[.@~+$/\\-])+(?::\d+|\((?!s\)))?")
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_PLAIN_NAME = re.compile(r"(?<![\w.])[A-Za-z][A-Za-z0-9]{3,80}(?!\w|\.\w)")
_CODE_NAME = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|[^_]_[^_]")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)

_TRACE = re.compile(
    r"Traceback \(most recent call last"  # Python
    r'|\s*File "[^"]+", line \d+'
    r"|\s*at (?:async )?[\w.$<>\[\]` ]{1,120}\(.*\)$"  # JavaScript, Java, C#
    r"|\s*at \S+:\d+:\d+$"
    r"|\s*at .{1,200} in .{1,200}:line \d+"
    r"|Exception in thread |Caused by: |Unhandled exception"
    r"|panic: |goroutine \d+ \["  # Go
    r"|thread '[^']*' (?:\(\d+\) )?panicked at"  # Rust
    r"|\s*(?:from )?\S+\.rb:\d+:in "  # Ruby
    r"|(?:PHP )?(?:Fatal|Parse) error: |#\d+ .{1,200}\.php\(\d+\)"  # PHP
    r"|\S*\.swift:\d+: Fatal error|Fatal error: .{1,200}\.swift"  # Swift
    r"|\s*(?:frame )?#\d+:? +0x[0-9a-f]+"  # gdb, lldb
    r"|(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?:\b: |$)"
)
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+|diff --git |(?:---|\+\+\+) [ab]/")
_LOG = re.compile(
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|CRITICAL|TRACE)\b[\]:]? +\S"
    r"|npm ERR!|error(?:\[E\d+\])?: .|FAILED \S+::"
)
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?[ -](?:code|status)|returncode|errorlevel)[ =:]+-?\d", re.IGNORECASE
)
_GIT = re.compile(r"\bgit (?:diff|status|show)\b|(?<!\S)--(?:staged|cached)\b", re.IGNORECASE)


class CommonNames(msgspec.Struct, frozen=True):
    """`words/common.json`."""

    extensions: frozenset[str]
    names: frozenset[str]
    """Of files without an extension."""

    products: frozenset[str]


class Structure(msgspec.Struct, frozen=True):
    """`prose` is the text with a private-use character for each thing that is not a word (`rules.MARKS`)."""

    prose: str
    files: tuple[str, ...] = ()
    """The known files that are named."""

    names: frozenset[str] = frozenset()
    """The identifiers that are named and occur in an open file."""

    words: frozenset[str] = frozenset()
    """Those that are spelled as ordinary words, such as `tokenize`: they may be meant as words."""

    place: bool = False
    """A file and a line, `foo.py:12`, of a file that need not be known."""

    path: bool = False
    code: bool = False
    trace: bool = False
    hunk: bool = False
    log: bool = False
    exit_code: bool = False
    git: bool = False


def read_structure(prompt: str, files: tuple[str, ...], identifiers: frozenset[str]) -> Structure:
    text = ends(prompt, MAX_CHARACTERS_READ)
    lines = [line[:MAX_LINE_READ] for line in text.splitlines()[:MAX_LINES]]
    prose, code = _without_fences(text)
    names = _NameMarker(files, identifiers)
    prose = names.take(prose)
    return Structure(
        prose=_prose_lines(prose),
        files=tuple(file for file in files if file in names.named),
        names=frozenset(names.known),
        words=frozenset(names.known_words),
        place=names.place,
        path=names.path,
        code=code,
        trace=any(map(_TRACE.match, lines)),
        hunk=any(map(_HUNK.match, lines)),
        log=any(map(_LOG.match, lines)),
        exit_code=_EXIT.search(prose) is not None,
        git=_GIT.search(text) is not None,
    )


def is_code_name(name: str) -> bool:
    """Return whether a name is spelled as code: snake_case or camelCase, which no natural word is. Names such
    as __init__ are ubiquitous and identify no file."""
    return _CODE_NAME.search(name) is not None and not name.startswith("__")


class _NameMarker:
    """Finds names in prose and replaces each by a mark."""

    def __init__(self, files: tuple[str, ...], identifiers: frozenset[str]) -> None:
        self.named: set[str] = set()
        self.known: set[str] = set()
        self.known_words: set[str] = set()
        self.place = self.path = False
        self._files: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for file in files:
            if parts := _parts(file):
                self._files.setdefault(parts[-1], []).append((file, parts))
        self._stems = _lone_stems(files)
        self._identifiers = identifiers
        self._odd = [file for file in files if _RUN.fullmatch(os.path.basename(file)) is None]

    def take(self, prose: str) -> str:
        for file in self._odd:
            # A name with spaces, or in a script without them, is not a run of its own: it is searched as it
            # is.
            if (base := os.path.basename(file)) and base in prose:
                self.named.add(file)
                prose = prose.replace(base, MARKS["FILE"])
        prose = _SPAN.sub(lambda found: self._span(found.group(1)), prose)
        prose = _RUN.sub(lambda found: self._run(found.group()), prose)
        return _PLAIN_NAME.sub(lambda found: self._word(found.group()), prose) if self._identifiers else prose

    def _word(self, word: str) -> str:
        """Mark a name such as `tokenize`, which no phrase has and an open file does."""
        if word not in self._identifiers or is_in_phrases(word):
            return word
        self.known_words.add(word)
        return MARKS["WORD"]

    def _span(self, inside: str) -> str:
        marked = " ".join(self._run(run.group(), quoted=True) for run in _RUN.finditer(inside))
        return f" {marked if MARKS['FILE'] in marked or MARKS['PATH'] in marked else MARKS['NAME']} "

    def _run(self, run: str, quoted: bool = False) -> str:
        called = run.endswith("(")
        bare, tail = _strip_punctuation(run.removesuffix("("))
        path, colon, line = bare.partition(":")
        if named := self._file(path):
            self.named.update(named)
            self.place |= bool(colon)
            return f" {MARKS['FILE']} {tail}"
        if _is_path(path):
            self.path = True
            self.place |= bool(colon)
            return f" {MARKS['PATH']} {tail}"
        plain = quoted or called
        names = _IDENTIFIER.findall(path) if plain or is_code_name(path) else []
        self.known.update(
            name for name in names if name in self._identifiers and (plain or is_code_name(name))
        )
        if any(map(is_code_name, names)):
            return f" {MARKS['NAME']} {line}{tail}"
        return run

    def _file(self, path: str) -> list[str]:
        """Return the known files that a run names: by the end of the path, or without its extension if that
        is unambiguous."""
        for spelled in dict.fromkeys((path, path.rpartition("-")[0])):
            parts = _parts(spelled)
            if not parts:
                continue
            of_that_name = self._files.get(parts[-1], ())
            if named := [file for file, known in of_that_name if _same_end(parts, known)]:
                # `Makefile` names the file of that name; "license" and "readme" are also ordinary words.
                plain = "." not in parts[-1] and len(parts) == 1
                return [file for file in named if not plain or os.path.basename(file) == spelled]
            if is_code_name(parts[-1]) and (file := self._stems.get(parts[-1].casefold())):
                return [file]
        return []


def _strip_punctuation(run: str) -> tuple[str, str]:
    """Return a run without the punctuation that ends a sentence, and that punctuation."""
    bare = run.rstrip(".-+~@/\\")
    return bare.lstrip("@"), run[len(bare) :]


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".", "~"))


def _same_end(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether one path is the end of the other: `orders.py` and `/home/me/src/orders.py` name
    `src/orders.py`, but `lib/orders.py` does not."""
    short = min(len(one), len(other))
    return short > 0 and one[-short:] == other[-short:] and (len(one) == short or len(other) > 1)


def _lone_stems(files: tuple[str, ...]) -> dict[str, str]:
    stems: dict[str, list[str]] = {}
    for file in files:
        stems.setdefault(os.path.basename(file).partition(".")[0].casefold(), []).append(file)
    return {stem: those[0] for stem, those in stems.items() if len(those) == 1}


def _is_path(path: str) -> bool:
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    common = _common()
    if name.casefold() in common.products:
        return False
    if (dot and stem and extension.casefold() in common.extensions) or name.casefold() in common.names:
        return True
    return path.startswith(("./", "../", "~/")) and len(path) > 3


def _without_fences(text: str) -> tuple[str, bool]:
    """Return prose with a mark for each code block; an unclosed fence extends to the end."""
    pieces = _FENCE.split(text)
    if len(pieces) == 1:
        return text, False
    return f"\n{MARKS['CODE']}\n".join(pieces[::2]), True


def _prose_lines(text: str) -> str:
    """Return the text without lines that a program wrote: their words are not the user's."""
    kept = (line for line in text.split("\n") if not _is_program_output(line[:MAX_LINE_READ]))
    return "\n".join(kept)


def _is_program_output(line: str) -> bool:
    return _TRACE.match(line) is not None or _LOG.match(line) is not None


@functools.cache
def _common() -> CommonNames:
    return read_words("common", CommonNames)
