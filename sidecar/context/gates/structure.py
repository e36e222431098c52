"""What a prompt is made of beside words: names of files, identifiers, code, traces, log lines, pieces of a diff.

Works the same in every language. Knows nothing of gates; its own lists (`words/common.json`) are of file endings and
names. A prompt may be a megabyte that was pasted: only its two ends are looked at, lines only at their beginning, and
no expression here repeats a repetition, so a hostile prompt costs no more than a long one.
"""

from __future__ import annotations

import functools
import os
import re

import msgspec

from .phrases import MARKS, WIDE, ends

LOOKED_AT = 8_000
"""Characters from either end. What is asked stands before or after what was pasted, not in the middle of it."""

LINE_LOOKED_AT = 400
MAX_LINES = 400
"""Of each of these many lines: a trace's line is shorter, and its first lines tell what it is."""

_NAME = rf"[^\W{WIDE}\u1100-\u11ff\uac00-\ud7af]"
_RUN = re.compile(rf"(?:{_NAME}|[.@~+$/\\-])+(?::\d+|\((?!s\)))?")
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_INNER = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|[^_]_[^_]")
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


class Common(msgspec.Struct, frozen=True):
    """`words/common.json`."""

    extensions: frozenset[str]
    names: frozenset[str]
    """Of files without an ending."""

    products: frozenset[str]


class Structure(msgspec.Struct, frozen=True):
    """`prose` is the text with a private character for each thing that is no word (`phrases.MARKS`)."""

    prose: str
    files: tuple[str, ...] = ()
    """Those of the known files that are named."""

    known_name: bool = False
    """An identifier is named that occurs in an open file."""

    place: bool = False
    """A file and a line, `foo.py:12`, of a file that need not be known."""

    path: bool = False
    code: bool = False
    trace: bool = False
    hunk: bool = False
    log: bool = False
    exit_code: bool = False
    git: bool = False


def read(prompt: str, files: tuple[str, ...], identifiers: frozenset[str]) -> Structure:
    text = ends(prompt, LOOKED_AT)
    lines = [line[:LINE_LOOKED_AT] for line in text.splitlines()[:MAX_LINES]]
    prose, code = _without_fences(text)
    names = _Names(files, identifiers)
    prose = names.take(prose)
    return Structure(
        prose=_prose_lines(prose),
        files=tuple(file for file in files if file in names.named),
        known_name=names.known,
        place=names.place,
        path=names.path,
        code=code,
        trace=any(map(_TRACE.match, lines)),
        hunk=any(map(_HUNK.match, lines)),
        log=any(map(_LOG.match, lines)),
        exit_code=_EXIT.search(prose) is not None,
        git=_GIT.search(text) is not None,
    )


def shaped(name: str) -> bool:
    """Whether it is spelled as code: snake_case or camelCase, which no natural word is. Names such as __init__ are
    everybody's and point at no file."""
    return _INNER.search(name) is not None and not name.startswith("__")


class _Names:
    """Finds names in prose and puts a mark in the place of each."""

    def __init__(self, files: tuple[str, ...], identifiers: frozenset[str]) -> None:
        self.named: set[str] = set()
        self.known = self.place = self.path = False
        self._files: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for file in files:
            if parts := _parts(file):
                self._files.setdefault(parts[-1], []).append((file, parts))
        self._stems = _lone_stems(files)
        self._identifiers = identifiers
        self._odd = [file for file in files if _RUN.fullmatch(os.path.basename(file)) is None]

    def take(self, prose: str) -> str:
        for file in self._odd:
            # A name with blanks, or in a script without them, is no run of its own: it is looked for as it stands.
            if (base := os.path.basename(file)) and base in prose:
                self.named.add(file)
                prose = prose.replace(base, MARKS["FILE"])
        prose = _SPAN.sub(lambda found: self._span(found.group(1)), prose)
        return _RUN.sub(lambda found: self._run(found.group()), prose)

    def _span(self, inside: str) -> str:
        marked = " ".join(self._run(run.group(), quoted=True) for run in _RUN.finditer(inside))
        return f" {marked if MARKS['FILE'] in marked or MARKS['PATH'] in marked else MARKS['NAME']} "

    def _run(self, run: str, quoted: bool = False) -> str:
        called = run.endswith("(")
        bare, tail = _bare(run.removesuffix("("))
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
        names = _IDENTIFIER.findall(path) if plain or shaped(path) else []
        self.known |= any(name in self._identifiers and (plain or shaped(name)) for name in names)
        if any(map(shaped, names)):
            return f" {MARKS['NAME']} {line}{tail}"
        return run

    def _file(self, path: str) -> list[str]:
        """The known files that a run names: by the end of the path, or without its ending when that is plain."""
        for spelled in dict.fromkeys((path, path.rpartition("-")[0])):
            parts = _parts(spelled)
            if not parts:
                continue
            of_that_name = self._files.get(parts[-1], ())
            if named := [file for file, known in of_that_name if _same_end(parts, known)]:
                # `Makefile` names the file of that name; "license" and "readme" are also plain words.
                plain = "." not in parts[-1] and len(parts) == 1
                return [file for file in named if not plain or os.path.basename(file) == spelled]
            if shaped(parts[-1]) and (file := self._stems.get(parts[-1].casefold())):
                return [file]
        return []


def _bare(run: str) -> tuple[str, str]:
    """A run without the marks that end a sentence, and those marks."""
    bare = run.rstrip(".-+~@/\\")
    return bare.lstrip("@"), run[len(bare) :]


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".", "~"))


def _same_end(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """`orders.py` names `src/orders.py`, and so does `/home/me/src/orders.py`, but `lib/orders.py` does not."""
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
    """Prose alone, a mark for each block of code; a fence that is never closed runs to the end."""
    pieces = _FENCE.split(text)
    if len(pieces) == 1:
        return text, False
    return f"\n{MARKS['CODE']}\n".join(pieces[::2]), True


def _prose_lines(text: str) -> str:
    """Without lines that a program wrote: their words are not the user's."""
    kept = (line for line in text.split("\n") if not _written(line[:LINE_LOOKED_AT]))
    return "\n".join(kept)


def _written(line: str) -> bool:
    return _TRACE.match(line) is not None or _LOG.match(line) is not None


@functools.cache
def _common() -> Common:
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "words")
    with open(os.path.join(folder, "common.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=Common)
