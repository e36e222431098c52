"""Random chats in windows from 2k to 2M, any Unicode, both encodings: what is sent is counted again, independently."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from sidecar.context import assembly
from sidecar.context.assembly import MESSAGE_TOKENS
from sidecar.context.budget import ConfiguredCaps, budget, caps
from sidecar.context.excerpts import excerpt
from sidecar.context.fences import fence_text
from sidecar.context.materials import Candidate, Candidates, PastTurn, RetrievedText
from sidecar.context.tokens import encodings
from sidecar.context.tokens.counting import TokenCounter
from sidecar.context.tokens.families import TokenizerFamily

CASES = int(os.environ.get("SIDECAR_OVERRUN_CASES", "120"))
"""For each encoding; 5,000 is what the published figure was run with."""

WORDS = [
    "lorem",
    "def f(x):",
    "数据库",
    "наука",
    "🙂👩‍👩‍👧",
    "\t\t",
    "0xFF",
    "é",
    "ﷺ",
    "مرحبا",
    "{}",
    "\n",
    "a" * 40,
    "1,2,3",
]


class Draw:
    """A random chat and project; `count` is the counter under test."""

    def __init__(self, seed: int, family: TokenizerFamily) -> None:
        self.random = random.Random(seed)
        self.counter = TokenCounter()
        self.family = family

    def count(self, text: str) -> int:
        return self.counter.count(text, self.family)

    def text(self, most: int) -> str:
        size = int(2 ** self.random.uniform(0, most))
        return " ".join(self.random.choice(WORDS) for _ in range(size))

    def past(self, number: int) -> PastTurn:
        text = self.text(9)

        def cut(room: int) -> tuple[Any, int, str] | None:
            kept = self.counter.cut(text, room - MESSAGE_TOKENS, self.family, "tail")
            return (kept, self.count(kept) + MESSAGE_TOKENS, kept) if kept else None

        return PastTurn(f"t{number}", self.count(text) + MESSAGE_TOKENS, text, cut)

    def block(self, kind: str, number: int) -> Candidate:
        id, raw = f"{kind}:{number}", self.text(10)

        def cut(_: str, room: int) -> str:
            part = excerpt(raw, "f lorem", room - 60, self.count)
            return fence_text("secret", id, kind, part) if part else ""

        text = fence_text("secret", id, kind, raw)
        return Candidate(id, kind, kind, text, "gate", self.random.random() < 0.8, cut)

    def found(self, room: int, _: frozenset[str]) -> RetrievedText | None:
        text = self.counter.cut(self.text(11), room, self.family)
        return RetrievedText(text, self.count(text), ()) if text else None

    def materials(self) -> Candidates:
        pick = self.random.randint
        return Candidates(
            fixed=[Candidate(kind, kind, kind, self.text(5), "always") for kind in ("system", "rules")],
            prompt=Candidate("prompt", "prompt", "prompt", self.text(7), "prompt"),
            attachments=Candidate("attachments", "attachments", "a", self.text(7), "attached")
            if pick(0, 1)
            else None,
            tools=[
                Candidate(f"tool:{at}", "tools", f"t{at}", self.text(6), "always") for at in range(pick(0, 9))
            ],
            turns=[self.past(number) for number in range(pick(0, 12))],
            more_turns=self.random.random() < 0.5,
            pinned=[self.block("openFiles", number) for number in range(pick(0, 2))],
            summary=self.block("summary", 0) if pick(0, 1) else None,
            files=[self.block("openFiles", number + 5) for number in range(pick(0, 3))],
            diffs=[self.block("patches", number) for number in range(pick(0, 2))],
            git_diff=self.block("gitDiff", 0) if pick(0, 1) else None,
            retrieve=self.found,
            retrieval_gate=lambda sent: "uncovered-terms",
        )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("encoding", [encodings.O200K, encodings.CL100K])
def test_nothing_that_is_sent_exceeds_its_budget(encoding: str) -> None:
    family = TokenizerFamily("exact", encoding, exact=True)
    reference = encodings.encoding(encoding)
    overruns = []
    for seed in range(CASES):
        draw = Draw(seed, family)
        window = int(2 ** draw.random.uniform(11, 21))
        allowed = budget(window, None, exact=True)
        made = assembly.assemble(draw.materials(), allowed, caps(allowed.total, ConfiguredCaps()), draw.count)
        sent = [
            block.text for block in made.blocks if block.included != "dropped" and block.kind != "history"
        ]
        counted = sum(len(reference.encode(text, disallowed_special=())) for text in sent)
        counted += sum(block.tokens for block in made.blocks if block.kind == "history")
        if counted > allowed.total:
            overruns.append((seed, counted, allowed.total))
    assert overruns == []
