"""One budget: never exceeded, well used, what must be sent is sent, and the same comes out of the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.context import assembly
from sidecar.context.assembly import MESSAGE_TOKENS
from sidecar.context.budget import ASSUMED_WINDOW, MARGIN, TOOLS_SHARE, Budget, ConfiguredCaps, budget, caps
from sidecar.context.materials import Candidate, Candidates, PastTurn, RetrievedText
from sidecar.text.token_estimate import CountTokens, CutText

TEXTS = st.text(max_size=400)
COUNTS = st.sampled_from([3, 4])


def counter(width: int) -> CountTokens:
    return lambda text: -(-len(text.encode(errors="replace")) // width)


def head(width: int) -> CutText:
    return lambda text, room: text.encode(errors="replace")[: room * width].decode(errors="ignore")


def past(number: int, text: str, width: int) -> PastTurn:
    count, cut = counter(width), head(width)

    def shorter(room: int) -> tuple[Any, int, str] | None:
        kept = cut(text, room - MESSAGE_TOKENS)
        return (kept, count(kept) + MESSAGE_TOKENS, kept) if kept else None

    return PastTurn(f"t{number}", count(text) + MESSAGE_TOKENS, text, shorter)


@st.composite
def materials(draw: st.DrawFn) -> tuple[Candidates, int]:
    width = draw(COUNTS)
    cut = head(width)

    def block(kind: str, number: int) -> Candidate:
        return Candidate(f"{kind}:{number}", kind, kind, draw(TEXTS), "gate", draw(st.booleans()), cut)

    turns = [past(number, draw(TEXTS), width) for number in range(draw(st.integers(0, 12)))]

    def retrieve(room: int, without: frozenset[str]) -> RetrievedText | None:
        text = cut("found " * 500, room)
        return RetrievedText(text, counter(width)(text), ("t0",)) if text else None

    return Candidates(
        fixed=[Candidate(kind, kind, kind, draw(TEXTS), "always") for kind in ("system", "rules")],
        prompt=Candidate("prompt", "prompt", "prompt", draw(TEXTS), "prompt"),
        attachments=draw(
            st.none() | st.just(Candidate("attachments", "attachments", "a", draw(TEXTS), "attached"))
        ),
        tools=[
            Candidate(f"tool:{at}", "tools", f"t{at}", draw(TEXTS), "always")
            for at in range(draw(st.integers(0, 5)))
        ],
        turns=turns,
        more_turns=draw(st.booleans()),
        pinned=[block("openFiles", number) for number in range(draw(st.integers(0, 2)))],
        summary=draw(st.none() | st.just(block("summary", 0))),
        files=[block("openFiles", number + 5) for number in range(draw(st.integers(0, 3)))],
        diffs=[block("patches", number) for number in range(draw(st.integers(0, 2)))],
        git_diff=draw(st.none() | st.just(block("gitDiff", 0))),
        retrieve=retrieve,
        retrieval_gate=lambda sent: "uncovered-terms",
    ), width


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(materials(), st.integers(1, 4000))
def test_the_sum_never_exceeds_the_budget_and_what_must_be_sent_is_sent(
    made: tuple[Candidates, int], total: int
) -> None:
    given_, width = made
    count = counter(width)
    found = assembly.assemble(given_, Budget(total, 0, total), caps(total, ConfiguredCaps()), count)
    needed = count(given_.prompt.text) + MESSAGE_TOKENS
    needed += sum(count(one.text) for one in given_.fixed)
    needed += count(given_.attachments.text) if given_.attachments else 0

    if needed > total:
        assert (found.needed, found.blocks) == (needed, [])
        return
    sent = [block for block in found.blocks if block.included != "dropped"]
    assert found.used == sum(block.tokens for block in sent) <= total
    assert {"system", "rules", "prompt"} <= {block.id for block in sent}
    for block in sent:
        assert (
            count(block.text) <= block.tokens + sum(MESSAGE_TOKENS for _ in found.turns)
            or block.kind == "history"
        )
    again = assembly.assemble(given_, Budget(total, 0, total), caps(total, ConfiguredCaps()), count)
    assert again == found


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(1, 400), max_size=12), st.integers(100, 4000))
def test_the_most_needed_tools_that_fit_their_share_are_sent_and_the_others_named(
    sizes: list[int], total: int
) -> None:
    count = counter(4)
    tools = [
        Candidate(f"tool:{at}", "tools", f"t{at}", "x" * size, "always") for at, size in enumerate(sizes)
    ]
    prompt = Candidate("prompt", "prompt", "prompt", "go on", "prompt")
    made = assembly.assemble(
        Candidates(fixed=[], prompt=prompt, tools=tools),
        Budget(total, 0, total),
        caps(total, ConfiguredCaps()),
        count,
    )
    left = int(total * TOOLS_SHARE)
    sent: list[str] = []
    out: list[str] = []
    for tool in tools:
        tokens = count(tool.text) + assembly.TOOL_TOKENS
        (sent if tokens <= left else out).append(tool.label)
        left -= tokens if tokens <= left else 0

    assert made.tools == frozenset(sent)
    rows = {block.id: block for block in made.blocks if block.kind == "tools"}
    assert set(rows) == {*(["tools"] if sent else []), *(["tools:left-out"] if out else [])}
    if out:
        assert rows["tools:left-out"].label == f"left out: {', '.join(sorted(out))}"
        assert (rows["tools:left-out"].included, rows["tools:left-out"].gate) == ("dropped", "no-room")


@settings(deadline=None, max_examples=200)
@given(st.integers(2_000, 200_000), st.integers(1, 60), COUNTS, st.integers(0, 400))
def test_a_chat_that_is_too_long_fills_the_budget(total: int, long: int, width: int, hits: int) -> None:
    """Whatever is found, and although the newest turns may be among it."""
    count = counter(width)
    turns = [past(number, "words of a turn " * (long * 20), width) for number in range(60)]
    while sum(turn.tokens for turn in turns) < 2 * total:
        turns = [*turns, *turns]
    turns = [PastTurn(f"u{at}", turn.tokens, turn.text, turn.cut) for at, turn in enumerate(turns)]
    prompt = Candidate("prompt", "prompt", "prompt", "go on", "prompt")

    def retrieve(room: int, without: frozenset[str]) -> RetrievedText | None:
        text, names = "", []
        for turn in reversed(turns[-hits:] if hits else []):
            if turn.id not in without and count(text + turn.text) <= room:
                text += turn.text
                names.append(turn.id)
        return RetrievedText(text, count(text), tuple(names)) if names else None

    materials = Candidates(
        fixed=[],
        prompt=prompt,
        turns=turns,
        more_turns=True,
        retrieve=retrieve,
        retrieval_gate=lambda sent: "explicit",
    )
    found = assembly.assemble(materials, Budget(total, 0, total), caps(total, ConfiguredCaps()), count)
    assert 0.97 * total <= found.used <= total
    twice = set(found.turns) & set(found.found.turns if found.found else ())
    assert not twice


@given(st.integers(1, 2_000_000), st.none() | st.integers(1, 300_000), st.booleans())
def test_a_budget_leaves_room_for_the_answer(size: int, reserve: int | None, exact: bool) -> None:
    made = budget(size, reserve, exact=exact)

    assert 0 <= made.total <= size - made.reserve
    assert made.window == size
    spare = size - made.reserve - made.total
    assert spare == 0 if exact else spare == min(int(size * MARGIN), size - made.reserve)


@given(st.integers(0, 4_000_000))
def test_caps_are_a_share_of_a_small_budget_and_grow_with_a_large_one(total: int) -> None:
    found = caps(total, ConfiguredCaps())
    together = found.open_files + found.diffs + found.git_diff + found.retrieval

    assert together <= max(total, 0)
    if total >= ASSUMED_WINDOW:
        assert (found.per_file, found.open_files) >= (2000, 8000)
