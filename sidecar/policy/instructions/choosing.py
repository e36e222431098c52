"""Which instruction rules apply to a prompt. Pure.

Paths are written as the workspace shows them, relative to the project. A pattern may come from a hostile
project: globs are matched within bounds (`workspace/globs`), and words are looked for as plain text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...workspace.globs import Glob, alternatives
from ...workspace.globs import parsed as glob
from .rule import Instruction

MAX_LOOKED = 32 * 1024
"""Characters at the beginning, and at the end, of a prompt in which words are looked for: between them stands what was
pasted, and a thousand words in a megabyte would take a second."""

_RUN_ON = (
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
"""Scripts without blanks between words, and Korean, whose particles follow a word without one."""


def chosen(instructions: Iterable[Instruction], prompt: str, paths: Sequence[str]) -> list[Instruction]:
    """Those that apply now: the highest priority first, then the project's before the user's, then by path."""
    heard = _folded(_ends(prompt))
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
            return any(_is_said(_folded(word), heard) for word in one.words)


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name not in ("", "."))


@lru_cache(512)
def _globs(text: str) -> tuple[Glob, ...]:
    return tuple(glob(one) for one in alternatives(text))


def _is_said(word: str, heard: str) -> bool:
    """Whether the word stands in the text, as a word where its script parts words. `refactor*` may go on."""
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
    """Whether the two stand within one word. A mark belongs to the letter before it."""
    if _runs_on(left) or _runs_on(right):
        return unicodedata.category(right).startswith("M")
    return _in_word(left) and _in_word(right)


def _runs_on(char: str) -> bool:
    return any(first <= char <= last for first, last in _RUN_ON)


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


def _ends(prompt: str) -> str:
    return prompt if len(prompt) <= 2 * MAX_LOOKED else f"{prompt[:MAX_LOOKED]}\n{prompt[-MAX_LOOKED:]}"


def _folded(text: str) -> str:
    """One spelling for what reads the same: case, width, accents as one character or two, runs of blanks."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())
