"""Merge the rules that apply into one text within a token budget. Pure: the same for the same rules.

A rule is included in full or not at all, in the given order; omitted rules are named. Only a rule that is longer than
the whole budget is included with its beginning, since it could never fit. The caller counts tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from ...text.token_estimate import CountTokens
from .rule import Instruction

MAX_NAMED = 10
"""Omitted rules that the text names. The list of the block has all of them."""

NOTE_SHARE = 10
"""One tenth of the budget is reserved for that, when something must be omitted."""


_PLACEHOLDER = re.compile(r"\{(project|path|file)\}")
_SEPARATOR = "\n\n"


class RulesBlock(msgspec.Struct, frozen=True):
    """`cut` are those of `included` that are truncated; `repeated` are duplicates of another; `broken` could not be
    read. `fenced` is the text to send instead when the project is no longer trusted.
    """

    text: str
    tokens: int
    included: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    fenced: str | None = None


class _Piece(msgspec.Struct, frozen=True):
    path: str
    title: str
    text: str
    cut: bool = False

    @property
    def shown(self) -> str:
        return f"{self.title}\n{self.text}"


def render_rules(
    chosen: Sequence[Instruction],
    count: CountTokens,
    max_tokens: int,
    values: Mapping[str, str],
    answers: Mapping[str, str] | None = None,
) -> RulesBlock:
    """Return the block of these rules, whose text never exceeds `max_tokens`.

    `values` replace the placeholders; one without a value stays as it is. `answers` are the outputs of handlers by
    the path of the rule: each follows the rule's own text.
    """
    pieces, repeated = _pieces(chosen, values, answers or {})
    taken = _fitting(pieces, count, max_tokens)
    while taken and count(_join(taken)) > max_tokens:
        taken.pop()  # token counts are not additive: joined text may have more
    paths = {piece.path for piece in taken}
    left_out = tuple(piece.path for piece in pieces if piece.path not in paths)
    text = _with_note(_join(taken), left_out, count, max_tokens)
    return RulesBlock(
        text,
        count(text) if text else 0,
        included=tuple(piece.path for piece in taken),
        left_out=left_out,
        cut=tuple(piece.path for piece in taken if piece.cut),
        repeated=repeated,
    )


def _pieces(
    chosen: Sequence[Instruction], values: Mapping[str, str], answers: Mapping[str, str]
) -> tuple[list[_Piece], tuple[str, ...]]:
    pieces: dict[str, _Piece] = {}
    repeated: list[str] = []
    for one in chosen:
        text = _fill_placeholders(one.text, values) if one.template else one.text
        text = _SEPARATOR.join(part for part in (text, answers.get(one.path, "").strip()) if part)
        if text in pieces:
            repeated.append(one.path)
        elif text:
            pieces[text] = _Piece(one.path, _title(one), text)
    return list(pieces.values()), tuple(repeated)


def _fitting(pieces: list[_Piece], count: CountTokens, max_tokens: int) -> list[_Piece]:
    costs = [count(piece.shown + _SEPARATOR) for piece in pieces]
    space = max_tokens if sum(costs) <= max_tokens else max_tokens - max_tokens // NOTE_SHARE
    taken: list[_Piece] = []
    for piece, cost in zip(pieces, costs, strict=True):
        if cost > max_tokens:
            # Half of the rest, so that one very long file does not exclude those after it.
            head = _first_lines(piece, count, space if piece is pieces[-1] else space // 2)
            if head is None:
                continue
            piece, cost = head, count(head.shown + _SEPARATOR)
        if cost <= space:
            taken.append(piece)
            space -= cost
    return taken


def _first_lines(piece: _Piece, count: CountTokens, space: int) -> _Piece | None:
    """Return as many of its first lines as fit, and a note on the others; None when not even one does."""
    lines = piece.text.split("\n")

    def head(kept: int) -> _Piece:
        text = "\n".join(lines[:kept]).rstrip()
        rest = f"… {len(lines) - kept} more lines of {_line(piece.path)} are left out"
        return _Piece(piece.path, piece.title, f"{text}\n{rest}", cut=True)

    kept = bisect_right(range(1, len(lines)), space, key=lambda kept: count(head(kept).shown + _SEPARATOR))
    return head(kept) if kept else None


def _with_note(text: str, left_out: tuple[str, ...], count: CountTokens, max_tokens: int) -> str:
    """Return the text and a line that names the omitted rules, if it fits: as many names as fit."""
    for named in range(min(MAX_NAMED, len(left_out)), -1 if left_out else 0, -1):
        names = ", ".join(map(_line, left_out[:named]))
        rest = len(left_out) - named
        more = f"{' and ' if names else ''}{rest} more" if rest else ""
        noted = _SEPARATOR.join(
            part for part in (text, f"Rules left out for lack of space: {names}{more}.") if part
        )
        if count(noted) <= max_tokens:
            return noted
    return text


def _join(pieces: Sequence[_Piece]) -> str:
    return _SEPARATOR.join(piece.shown for piece in pieces)


def _title(one: Instruction) -> str:
    if one.scope == "user":
        return f"# The user's rule {_line(one.name)}"
    beneath = f", for what is beneath {_line(one.folder)}/" if one.folder else ""
    return f"# From {_line(one.path)}{beneath}"


def _fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    # A path is the project's, and the rule may be the user's: it must not add lines to it.
    return _PLACEHOLDER.sub(lambda found: _line(values.get(found[1], found[0])), text)


def _line(text: str) -> str:
    """Return a name in one line; the name of a file may have line breaks."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
