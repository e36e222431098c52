"""Parse a shell command line into simple commands, or say why it cannot be parsed. Runs nothing and decides nothing.

It accepts only what bash and a plain POSIX shell read alike, without any lookup: words, quotes, separators, pipes and
redirections. Everything else (substitutions, expansions, control words, nested shells) is unclear, because the text
does not show what would run. `programs` adds the programs that run other code.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

import msgspec

from . import programs
from .tables import word_set

MAX_BYTES = 16 * 1024
"""Bytes of a command line: more than a person reads before permitting it."""

MAX_COMMANDS = 50
"""Commands in one line: in a longer chain, the one that matters is easily overlooked."""

HARMLESS_VARIABLES = word_set(
    "CI CLICOLOR COLUMNS DEBIAN_FRONTEND FORCE_COLOR LANG LANGUAGE LINES NODE_ENV NO_COLOR RUST_BACKTRACE TZ"
)
"""Assignments before a command that change what it prints, not what it runs. PATH, LD_PRELOAD, PAGER, GIT_DIR and
many others do, so all others are unclear. `LC_*` counts as harmless too.
"""

CONTROL_WORDS = word_set(
    "if then else elif fi for while until do done case esac in function select time coproc { } ! [[ ]]"
)

Direction = Literal["read", "write", "both"]


class Redirection(msgspec.Struct, frozen=True):
    """A file that the shell opens for a command; copies of descriptors (`2>&1`) are none."""

    direction: Direction
    target: str


class SimpleCommand(msgspec.Struct, frozen=True):
    """One command: its words after quote removal, and its redirections.

    `risk` says why no rule with a wildcard may allow it; `fed` that its stdin is a pipe or a file.
    """

    argv: tuple[str, ...]
    assignments: tuple[str, ...] = ()
    redirects: tuple[Redirection, ...] = ()
    fed: bool = False
    risk: str | None = None

    @property
    def written(self) -> tuple[str, ...]:
        """Return the files that the shell writes for it, except /dev/null."""
        return tuple(
            redirect.target
            for redirect in self.redirects
            if redirect.direction != "read" and redirect.target != "/dev/null"
        )


class ParsedCommand(msgspec.Struct, frozen=True):
    """`unclear` says why only permission for exactly this line lets it run. When the text could not be parsed there
    are no commands; otherwise `unclear` is the first `risk` of its commands.
    """

    commands: tuple[SimpleCommand, ...] = ()
    unclear: str | None = None
    background: bool = False


def parse_command(command: str) -> ParsedCommand:
    """Never raises, whatever the text."""
    try:
        _check_characters(command)
        tokens = _tokens(command)
        commands = _commands(tokens)
    except _Unclear as unclear:
        return ParsedCommand(unclear=str(unclear))
    risk = next((simple.risk for simple in commands if simple.risk), None)
    return ParsedCommand(
        commands, risk, any(token.kind == "operator" and token.text == "&" for token in tokens)
    )


def is_too_long(command: str) -> bool:
    """Return whether a line is too long to be reviewed or parsed."""
    return len(command) > MAX_BYTES or len(command.encode("utf-8", "surrogatepass")) > MAX_BYTES


class _Unclear(Exception):
    """Why the text cannot be parsed."""


class _Token(msgspec.Struct, frozen=True):
    """`plain` is the text with a NUL for each quoted piece, so that only what the shell itself interprets remains."""

    kind: Literal["word", "operator", "redirect"]
    text: str
    plain: str = ""
    number: bool = False
    """Whether it is the descriptor number of the redirection that follows."""


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
"""Longer operators come before their prefixes."""

_UNSUPPORTED = {
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
_NO_HISTORY_AFTER = ' \t\n="'
_INVISIBLE_CHARACTERS = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f"
"""Invisible or shown as a blank, though Unicode does not classify them so."""

_LOOK_ALIKES = (
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u01c0\u2223\u2758\u2216\u29f5\u29f9\ua789"
)
"""Look-alikes of quotes, bars, backslashes and colons; fullwidth forms are found by normalization."""


def _check_characters(command: str) -> None:
    if is_too_long(command):
        raise _Unclear(f"it has more than {MAX_BYTES} bytes")
    # Before anything is parsed: what the user cannot see in the dialog must not be in the line.
    for char in command:
        if char in "\t\n" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"):
            raise _Unclear(f"it has a control or invisible character (U+{ord(char):04X})")
        if char in _INVISIBLE_CHARACTERS or 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF:
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
        # Only here, at the start of a word, does `#` begin a comment.
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
    if text in _UNSUPPORTED:
        raise _Unclear(_UNSUPPORTED[text])
    return _Token("redirect" if text[0] in "<>" else "operator", text)


def _with_redirect(word: _Token) -> _Token:
    """Add a redirection: a digit directly before it names the descriptor, and is not a word of the command."""
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
            # A backslash before a line end joins the lines, and is no character of the word.
            if text[at + 1] != "\n":
                letters.append(text[at + 1])
                plain.append("\0")
            at += 2
        else:
            _check_unquoted(text, at)
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


def _check_unquoted(text: str, at: int) -> None:
    _check_expansion(text, at, literal=" \t\n")
    char = text[at]
    if char.isascii():
        return
    # NFKC shows what a character looks like: a fullwidth quote is a letter to the shell and a quote to
    # the reader.
    signs = (sign for sign in unicodedata.normalize("NFKC", char) if sign.isascii() and not sign.isalnum())
    if char in _LOOK_ALIKES or any(signs):
        raise _Unclear(f"it has a character that looks like one of the shell's (U+{ord(char):04X})")


def _check_expansion(text: str, at: int, *, literal: str) -> None:
    """Check the characters that are special in double quotes too; `$` before one of `literal` is itself."""
    following = text[at + 1 : at + 2]
    if text[at] == "`":
        raise _Unclear("it has a command substitution")
    if text[at] == "$" and following and following not in literal:
        raise _Unclear("it has a substitution or an expansion ($)")
    if text[at] == "!" and following and following not in _NO_HISTORY_AFTER:
        raise _Unclear("it may have a history expansion (!)")


def _check_word(word: _Token) -> None:
    braced = word.plain.partition("{")[2]
    if "," in braced or ".." in braced:
        raise _Unclear("it has a brace expansion")
    if re.search(_TILDE, word.plain):
        raise _Unclear("~ expands to an unknown folder")
    if _has_wildcard(word.plain):
        # A file named `-rf` would become an option.
        if word.text[0] in "*?[-":
            raise _Unclear("a wildcard at a word's start may become an option, by the name of a file")
        if re.search(_HIDDEN_GLOB, word.text):
            raise _Unclear("a wildcard may match hidden files")


def _has_wildcard(plain: str) -> bool:
    return "*" in plain or "?" in plain or "]" in plain.partition("[")[2]


def _commands(tokens: list[_Token]) -> tuple[SimpleCommand, ...]:
    """Parse tokens into commands. A pipe, && and || need one on either side; a line end may follow them."""
    commands: list[SimpleCommand] = []
    part: list[_Token] = []
    wanted: str | None = None
    # The added line end closes the last command.
    for token in [*tokens, _Token("operator", "\n")]:
        if token.kind != "operator":
            part.append(token)
            continue
        if part:
            commands.append(_simple(part, piped=wanted == "|"))
            part, wanted = [], None
        elif token.text != "\n":
            raise _Unclear(f"there is no command before {token.text}")
        if token.text in ("|", "&&", "||"):
            wanted = token.text
        if len(commands) > MAX_COMMANDS:
            raise _Unclear(f"it has more than {MAX_COMMANDS} commands")
    if wanted:
        raise _Unclear(f"there is no command after {wanted}")
    if not commands:
        raise _Unclear("there is no command")
    return tuple(commands)


def _simple(tokens: list[_Token], *, piped: bool) -> SimpleCommand:
    words: list[_Token] = []
    assignments: list[str] = []
    redirects: list[Redirection] = []
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
    # By `plain`: a quoted `if` is a program of that name.
    if words[0].plain in CONTROL_WORDS or _has_wildcard(words[0].plain):
        raise _Unclear(f"{words[0].text} is no plain command")
    argv = tuple(word.text for word in words)
    fed = piped or any(redirect.direction != "write" for redirect in redirects)
    return SimpleCommand(argv, tuple(assignments), tuple(redirects), fed, programs.risk_reason(argv))


def _assignment(token: _Token) -> str:
    name = token.text.partition("=")[0]
    if name not in HARMLESS_VARIABLES and not re.fullmatch(r"LC_[A-Z]+", name):
        raise _Unclear(f"{name[:40]} may change what the command does")
    return token.text


def _redirect(operator: str, target: _Token | None) -> list[Redirection]:
    if target is None or target.kind != "word" or target.number:
        raise _Unclear(f"there is no file after {operator}")
    if operator in ("<&", ">&"):
        if not re.fullmatch(r"[0-9]|-", target.plain):
            raise _Unclear(f"shells read {operator} before a name in different ways")
        return []
    if _has_wildcard(target.plain) or not target.text:
        raise _Unclear("a redirection's file is not known")
    if re.match(r"/+dev/+(tcp|udp)(/|$)", target.text):
        raise _Unclear("a redirection opens a connection")
    return [Redirection(_DIRECTIONS[operator], target.text)]
