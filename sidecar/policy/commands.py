"""Reads a shell's command line into simple commands, or says why it cannot. Runs nothing and decides nothing.

Only what bash and a plain POSIX shell read alike, and without looking anything up, is understood: words, quotes,
separators, pipes and redirections. All else (substitutions, expansions, control words, shells within the shell)
is unclear, as what would run cannot be told from the text. `programs` adds the programs that run other code.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

import msgspec

from . import programs
from .tables import names

MAX_BYTES = 16 * 1024
"""Of a command line: more than a person reads before giving leave."""

MAX_COMMANDS = 50
"""In one line: a longer chain is a script, where the one that matters is easily overlooked."""

HARMLESS_VARIABLES = names(
    "CI CLICOLOR COLUMNS DEBIAN_FRONTEND FORCE_COLOR LANG LANGUAGE LINES NODE_ENV NO_COLOR RUST_BACKTRACE TZ"
)
"""Assignments before a command that change what it prints, not what it runs. PATH, LD_PRELOAD, PAGER, GIT_DIR and
their like do, and there is no end of them, so all others are unclear. `LC_*` counts as harmless too."""

CONTROL_WORDS = names(
    "if then else elif fi for while until do done case esac in function select time coproc { } ! [[ ]]"
)

Direction = Literal["read", "write", "both"]


class Redirect(msgspec.Struct, frozen=True):
    """A file that the shell opens for a command; copies of descriptors (`2>&1`) are none."""

    direction: Direction
    target: str


class Simple(msgspec.Struct, frozen=True):
    """One command: its words after quoting, and what stands around them.

    `risk` says why no rule with a wildcard may speak for it; `fed` that its input comes from a pipe or a file.
    """

    argv: tuple[str, ...]
    assignments: tuple[str, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    fed: bool = False
    risk: str | None = None

    @property
    def written(self) -> tuple[str, ...]:
        """The files that the shell writes for it, but for /dev/null."""
        return tuple(
            redirect.target
            for redirect in self.redirects
            if redirect.direction != "read" and redirect.target != "/dev/null"
        )


class Parsed(msgspec.Struct, frozen=True):
    """`unclear` says why only leave for exactly this line may let it run. When the text itself was not understood
    there are no commands; when they are there, `unclear` is the first one's `risk`."""

    commands: tuple[Simple, ...] = ()
    unclear: str | None = None
    background: bool = False


def parse(command: str) -> Parsed:
    """Never raises, whatever the text."""
    try:
        _check_characters(command)
        tokens = _tokens(command)
        commands = _commands(tokens)
    except _Unclear as unclear:
        return Parsed(unclear=str(unclear))
    risk = next((simple.risk for simple in commands if simple.risk), None)
    return Parsed(commands, risk, any(token.kind == "operator" and token.text == "&" for token in tokens))


def too_long(command: str) -> bool:
    """True of a line that nobody looks through, this module included."""
    return len(command) > MAX_BYTES or len(command.encode("utf-8", "surrogatepass")) > MAX_BYTES


class _Unclear(Exception):
    """Why the text is not understood."""


class _Token(msgspec.Struct, frozen=True):
    """`plain` is the text with a NUL for each quoted piece, so that only what the shell itself reads is left."""

    kind: Literal["word", "operator", "redirect"]
    text: str
    plain: str = ""
    number: bool = False
    """It belongs to the redirection that it touches, and names a descriptor."""


_OPERATORS = (
    "<<<",
    "<<",
    "<&",
    "<>",
    "<(",
    ">>",
    ">&",
    ">|",
    ">(",
    ";;",
    ";&",
    "&&",
    "&>",
    "||",
    "|&",
    *"<>;&|()\n",
)
"""The longer before what they begin with."""

_FOREIGN = {
    "(": "it has a subshell or a function",
    ")": "it has a subshell or a function",
    "<(": "it has a process substitution",
    ">(": "it has a process substitution",
    "<<": "it has a here-document",
    "<<<": "it has a here-document",
    ";;": "it has a case",
    ";&": "it has a case",
    "|&": "shells read |& in different ways",
    "&>": "shells read &> in different ways",
}
_DIRECTIONS: dict[str, Direction] = {"<": "read", ">": "write", ">>": "write", ">|": "write", "<>": "both"}
_ENDS_WORD = " \t\n;&|<>()"
_ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?="
_TILDE = r"(^|[=:])~"
_HIDDEN_GLOB = r"(^|/)\.[^/]*[*?\[]"
_NOT_HISTORY = ' \t\n="'
_ODD_SPACES = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f"
"""Shown as nothing or as a blank, though Unicode does not class them so."""

_LOOK_ALIKES = (
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u01c0\u2223\u2758\u2216\u29f5\u29f9\ua789"
)
"""Of quotes, bars, backslashes and colons; fullwidth forms are found by what they normalise to."""


def _check_characters(command: str) -> None:
    if too_long(command):
        raise _Unclear(f"it has more than {MAX_BYTES} bytes")
    for char in command:
        if char in "\t\n" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"):
            raise _Unclear(f"it has a control or invisible character (U+{ord(char):04X})")
        if char in _ODD_SPACES or 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF:
            raise _Unclear(f"it has an invisible character (U+{ord(char):04X})")


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        operator = next((sign for sign in _OPERATORS if text.startswith(sign, at)), None)
        if text[at] in " \t":
            at += 1
        elif text.startswith("\\\n", at):
            at += 2
        elif text[at] == "#":
            at = text.find("\n", at)
            if at < 0:
                break
        elif operator:
            at += len(operator)
            tokens.append(_operator(operator))
        else:
            token, at = _word(text, at)
            tokens.append(_with_redirect(token) if text[at : at + 1] in ("<", ">") else token)
    return tokens


def _operator(text: str) -> _Token:
    if text in _FOREIGN:
        raise _Unclear(_FOREIGN[text])
    return _Token("redirect" if text[0] in "<>" else "operator", text)


def _with_redirect(word: _Token) -> _Token:
    """A word that touches the redirection after it: a digit names the descriptor, and is no word of the command."""
    if re.fullmatch(r"\{.*\}|[0-9]{2,}", word.plain, re.DOTALL):
        raise _Unclear(f"shells read {word.text[:40]} before a redirection in different ways")
    return msgspec.structs.replace(word, number=bool(re.fullmatch("[0-9]", word.plain)))


def _word(text: str, at: int) -> tuple[_Token, int]:
    letters: list[str] = []
    plain: list[str] = []
    while at < len(text) and text[at] not in _ENDS_WORD:
        char = text[at]
        if char == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise _Unclear("a quote is not closed")
            letters.append(text[at + 1 : end])
            plain.append("\0")
            at = end + 1
        elif char == '"':
            piece, at = _double_quoted(text, at + 1)
            letters.append(piece)
            plain.append("\0")
        elif char == "\\":
            if at + 1 == len(text):
                raise _Unclear("it ends in a backslash")
            if text[at + 1] != "\n":
                letters.append(text[at + 1])
                plain.append("\0")
            at += 2
        else:
            _check_bare(text, at)
            letters.append(char)
            plain.append(char)
            at += 1
    word = _Token("word", "".join(letters), "".join(plain))
    _check_word(word)
    return word, at


def _double_quoted(text: str, at: int) -> tuple[str, int]:
    letters: list[str] = []
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n"):
            letters.append(text[at + 1].replace("\n", ""))
            at += 2
        else:
            _check_expansion(text, at, literal=' \t"')
            letters.append(text[at])
            at += 1
    if at >= len(text):
        raise _Unclear("a quote is not closed")
    return "".join(letters), at + 1


def _check_bare(text: str, at: int) -> None:
    _check_expansion(text, at, literal=" \t\n")
    char = text[at]
    if char.isascii():
        return
    signs = (sign for sign in unicodedata.normalize("NFKC", char) if sign.isascii() and not sign.isalnum())
    if char in _LOOK_ALIKES or any(signs):
        raise _Unclear(f"it has a character that looks like one of the shell's (U+{ord(char):04X})")


def _check_expansion(text: str, at: int, *, literal: str) -> None:
    """The signs that mean something in double quotes too; `$` before one of `literal` is itself."""
    following = text[at + 1 : at + 2]
    if text[at] == "`":
        raise _Unclear("it has a command substitution")
    if text[at] == "$" and following and following not in literal:
        raise _Unclear("it has a substitution or an expansion ($)")
    if text[at] == "!" and following and following not in _NOT_HISTORY:
        raise _Unclear("it may have a history expansion (!)")


def _check_word(word: _Token) -> None:
    braced = word.plain.partition("{")[2]
    if "," in braced or ".." in braced:
        raise _Unclear("it has a brace expansion")
    if re.search(_TILDE, word.plain):
        raise _Unclear("~ stands for a folder that is not known here")
    if _has_wildcard(word.plain):
        if word.text[0] in "*?[-":
            raise _Unclear("a wildcard at a word's start may become an option, by the name of a file")
        if re.search(_HIDDEN_GLOB, word.text):
            raise _Unclear("a wildcard may stand for hidden files")


def _has_wildcard(plain: str) -> bool:
    return "*" in plain or "?" in plain or "]" in plain.partition("[")[2]


def _commands(tokens: list[_Token]) -> tuple[Simple, ...]:
    """The tokens as commands. A pipe, && and || want one on either side; a line's end may stand after them."""
    commands: list[Simple] = []
    part: list[_Token] = []
    wanted: str | None = None
    for token in [*tokens, _Token("operator", "\n")]:
        if token.kind != "operator":
            part.append(token)
            continue
        if part:
            commands.append(_simple(part, piped=wanted == "|"))
            part, wanted = [], None
        elif token.text != "\n":
            raise _Unclear(f"no command stands before {token.text}")
        if token.text in ("|", "&&", "||"):
            wanted = token.text
        if len(commands) > MAX_COMMANDS:
            raise _Unclear(f"it has more than {MAX_COMMANDS} commands")
    if wanted:
        raise _Unclear(f"no command stands after {wanted}")
    if not commands:
        raise _Unclear("there is no command")
    return tuple(commands)


def _simple(tokens: list[_Token], *, piped: bool) -> Simple:
    words: list[_Token] = []
    assignments: list[str] = []
    redirects: list[Redirect] = []
    waiting = iter(tokens)
    for token in waiting:
        if token.kind == "redirect":
            redirects.extend(_redirect(token.text, next(waiting, None)))
        elif token.number:
            continue
        elif not words and re.match(_ASSIGNMENT, token.plain):
            assignments.append(_assignment(token))
        else:
            words.append(token)
    if not words:
        raise _Unclear("it has an assignment or a redirection without a command")
    if words[0].plain in CONTROL_WORDS or _has_wildcard(words[0].plain):
        raise _Unclear(f"{words[0].text} is no plain command")
    argv = tuple(word.text for word in words)
    fed = piped or any(redirect.direction != "write" for redirect in redirects)
    return Simple(argv, tuple(assignments), tuple(redirects), fed, programs.risk(argv))


def _assignment(token: _Token) -> str:
    name = token.text.partition("=")[0]
    if name not in HARMLESS_VARIABLES and not re.fullmatch(r"LC_[A-Z]+", name):
        raise _Unclear(f"{name[:40]} may change what the command does")
    return token.text


def _redirect(operator: str, target: _Token | None) -> list[Redirect]:
    if target is None or target.kind != "word" or target.number:
        raise _Unclear(f"no file stands after {operator}")
    if operator in ("<&", ">&"):
        if not re.fullmatch(r"[0-9]|-", target.plain):
            raise _Unclear(f"shells read {operator} before a name in different ways")
        return []
    if _has_wildcard(target.plain) or not target.text:
        raise _Unclear("a redirection's file is not known")
    if re.match(r"/+dev/+(tcp|udp)(/|$)", target.text):
        raise _Unclear("a redirection opens a connection")
    return [Redirect(_DIRECTIONS[operator], target.text)]
