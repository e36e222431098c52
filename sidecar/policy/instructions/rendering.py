"""The rules that apply, merged into one text within a number of tokens. Pure: the same for the same rules.

A rule goes in whole or not at all, in the order given; what finds no room is named. Only a rule that is
longer than all the room there is gets in with its beginning, since it could never get in whole. How tokens
are counted is the caller's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

import msgspec

from .rule import Instruction

NAMED = 10
"""Rules named in the text as left out. The block's list has all of them."""

NOTE_SHARE = 10
"""The tenth part of the room is kept for that, when something must be left out."""

Count = Callable[[str], int]

_PLACEHOLDER = re.compile(r"\{(project|path|file)\}")
_SEAM = "\n\n"


class Block(msgspec.Struct, frozen=True):
    """`cut` are those of `included` whose end is missing; `repeated` say what another one says already."""

    text: str
    tokens: int
    included: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()


class _Piece(msgspec.Struct, frozen=True):
    path: str
    title: str
    text: str
    cut: bool = False

    @property
    def shown(self) -> str:
        return f"{self.title}\n{self.text}"


def rendered(
    chosen: Sequence[Instruction],
    count: Count,
    max_tokens: int,
    values: Mapping[str, str],
    answers: Mapping[str, str] | None = None,
) -> Block:
    """The block of these rules, whose text never counts more than `max_tokens`.

    `values` are what the placeholders stand for; one without a value stays as it is written. `answers` are what the
    handlers of rules said, by the rules' paths: each follows the rule's own text.
    """
    pieces, repeated = _pieces(chosen, values, answers or {})
    taken = _fitting(pieces, count, max_tokens)
    while taken and count(_joined(taken)) > max_tokens:
        taken.pop()  # tokens need not add up: a seam may cost more than it was counted for
    paths = {piece.path for piece in taken}
    left_out = tuple(piece.path for piece in pieces if piece.path not in paths)
    text = _with_note(_joined(taken), left_out, count, max_tokens)
    return Block(
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
        text = _filled(one.text, values) if one.template else one.text
        text = _SEAM.join(part for part in (text, answers.get(one.path, "").strip()) if part)
        if text in pieces:
            repeated.append(one.path)
        elif text:
            pieces[text] = _Piece(one.path, _title(one), text)
    return list(pieces.values()), tuple(repeated)


def _fitting(pieces: list[_Piece], count: Count, max_tokens: int) -> list[_Piece]:
    costs = [count(piece.shown + _SEAM) for piece in pieces]
    room = max_tokens if sum(costs) <= max_tokens else max_tokens - max_tokens // NOTE_SHARE
    taken: list[_Piece] = []
    for piece, cost in zip(pieces, costs, strict=True):
        if cost > max_tokens:
            # Half of what is left, so that one endless file does not keep out those after it.
            head = _head(piece, count, room if piece is pieces[-1] else room // 2)
            if head is None:
                continue
            piece, cost = head, count(head.shown + _SEAM)
        if cost <= room:
            taken.append(piece)
            room -= cost
    return taken


def _head(piece: _Piece, count: Count, room: int) -> _Piece | None:
    """As many of its first lines as fit, and a word on the others; None when not even one does."""
    lines = piece.text.split("\n")

    def head(kept: int) -> _Piece:
        text = "\n".join(lines[:kept]).rstrip()
        rest = f"… {len(lines) - kept} more lines of {_line(piece.path)} are left out"
        return _Piece(piece.path, piece.title, f"{text}\n{rest}", cut=True)

    kept = bisect_right(range(1, len(lines)), room, key=lambda kept: count(head(kept).shown + _SEAM))
    return head(kept) if kept else None


def _with_note(text: str, left_out: tuple[str, ...], count: Count, max_tokens: int) -> str:
    """The text and a line that names what is left out, if there is room: as many names as fit."""
    for named in range(min(NAMED, len(left_out)), -1 if left_out else 0, -1):
        names = ", ".join(map(_line, left_out[:named]))
        rest = len(left_out) - named
        more = f"{' and ' if names else ''}{rest} more" if rest else ""
        noted = _SEAM.join(
            part for part in (text, f"Rules left out for want of room: {names}{more}.") if part
        )
        if count(noted) <= max_tokens:
            return noted
    return text


def _joined(pieces: Sequence[_Piece]) -> str:
    return _SEAM.join(piece.shown for piece in pieces)


def _title(one: Instruction) -> str:
    if one.scope == "user":
        return f"# The user's rule {_line(one.name)}"
    beneath = f", for what is beneath {_line(one.folder)}/" if one.folder else ""
    return f"# From {_line(one.path)}{beneath}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _line(text: str) -> str:
    """A name in one line; a file's may have line breaks."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
