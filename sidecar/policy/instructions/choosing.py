"""Select the instruction rules that apply to a prompt. Pure.

Paths are written as the workspace shows them, relative to the project. A pattern may come from a hostile project:
globs are matched within bounds (`workspace/globs`), and words are searched as plain text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...text.folding import fold_case
from ...workspace.globs import Glob, expand_braces
from ...workspace.globs import parse_glob as glob
from .rule import Instruction

MAX_PROMPT_READ = 32 * 1024
"""Characters at the beginning, and at the end, of a prompt in which words are searched: pasted text is between them,
and a thousand words in a megabyte would take a second.
"""

_SCRIPTS_WITHOUT_BLANKS = (
    *(
        ("\u0e00", "\u109f"),
        ("\u1100", "\u11ff"),
        ("\u1780", "\u17ff"),
        ("\u2e80", "\u30ff"),
        ("\u3130", "\u318f"),
    ),
    *(("\u31f0", "\u31ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"), ("\uf900", "\ufaff")),
    ("\U00020000", "\U0003ffff"),
)
"""Scripts without spaces between words, and Korean, whose particles follow a word without a space."""


def choose_rules(instructions: Iterable[Instruction], prompt: str, paths: Sequence[str]) -> list[Instruction]:
    """Return those that apply: the highest priority first, then the project's before the user's, then by path."""
    heard = _fold_text(_both_ends(prompt))
    names = [_names(path) for path in paths]
    applying = [one for one in instructions if _has_words(one) and _applies(one, heard, names)]
    return sorted(applying, key=lambda one: (-one.priority, one.scope != "project", one.path))


def _has_words(one: Instruction) -> bool:
    return one.problem is None and bool(one.text or one.handler)


def _applies(one: Instruction, heard: str, paths: list[tuple[str, ...]]) -> bool:
    folder = _names(one.folder)
    beneath = [names[len(folder) :] for names in paths if names[: len(folder)] == folder]
    if folder and not beneath:
        return False
    match one.applies:
        case "always":
            return True
        case "glob":
            globs = [read for text in one.globs for read in _globs(text)]
            return any(names and pattern.matches(names) for pattern in globs for names in beneath)
        case "word":
            return any(_has_word(_fold_text(word), heard) for word in one.words)


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name not in ("", "."))


@lru_cache(512)
def _globs(text: str) -> tuple[Glob, ...]:
    return tuple(glob(one) for one in expand_braces(text))


def _has_word(word: str, heard: str) -> bool:
    """Return whether the text contains the word, as a whole word where the script separates words. `refactor*` is a
    prefix.
    """
    goes_on = len(word) > 1 and word.endswith("*")
    word = word[:-1] if goes_on else word
    at = heard.find(word)
    while at >= 0:
        end = at + len(word)
        begins = at == 0 or not _joins(heard[at - 1], word[0])
        if begins and (goes_on or end == len(heard) or not _joins(word[-1], heard[end])):
            return True
        at = heard.find(word, at + 1)
    return False


def _joins(left: str, right: str) -> bool:
    """Return whether the two are within one word. A combining mark belongs to the letter before it."""
    if _has_no_blanks(left) or _has_no_blanks(right):
        return unicodedata.category(right).startswith("M")
    return _in_word(left) and _in_word(right)


def _has_no_blanks(char: str) -> bool:
    return any(first <= char <= last for first, last in _SCRIPTS_WITHOUT_BLANKS)


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


def _both_ends(prompt: str) -> str:
    return (
        prompt
        if len(prompt) <= 2 * MAX_PROMPT_READ
        else f"{prompt[:MAX_PROMPT_READ]}\n{prompt[-MAX_PROMPT_READ:]}"
    )


def _fold_text(text: str) -> str:
    """Normalize case, width, combining accents and whitespace."""
    folded = unicodedata.normalize("NFKC", fold_case(text))
    return " ".join(folded.split())
