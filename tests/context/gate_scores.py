"""How well the gates tell what a prompt needs: precision, recall and F1 for each block, on labelled prompts.

`files` is the open files, `diff` the ledger's diffs or the git diff, `tool` retrieval. Each prompt meets a chat in
which the files that it names are open, one patch is recorded, and there are outputs to search. A prompt's text alone
decides to which half it belongs: rules are written by looking at the first, and the second tells what they are worth.

    python -m tests.context.gate_scores [--wrong]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from sidecar.context.gates import Gates, Scene, decide, opens

OWN = Path(__file__).with_name("gate_prompts.jsonl")
SHARED = Path(__file__).parents[3] / "shared" / "evals" / "gate_prompts.jsonl"
BLOCKS = ("files", "diff", "tool")
OPEN = ("src/orders.py", "web/cart.ts", "config.toml")
PATCHED = ("lib/stock.py",)

Decide = Callable[[Scene], Gates]


class Labelled(msgspec.Struct, frozen=True):
    prompt: str
    language: str
    files: bool
    diff: bool
    tool: bool
    identifiers: tuple[str, ...] = ()
    fresh: bool = False
    """Written last, after which a few rules were widened: nearest to prompts that nobody has seen."""

    @property
    def half(self) -> str:
        if self.fresh:
            return "fresh"
        return "tuned" if sha256(self.prompt.encode()).digest()[0] % 2 else "held out"


class Score(msgspec.Struct, frozen=True):
    """Of one block: prompts that need it and get it, that get it for nothing, and that miss it."""

    right: int = 0
    needless: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.needless) if self.right else 0.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (2 * self.right + self.needless + self.missed) if self.right else 0.0


def own() -> list[Labelled]:
    return [_labelled(msgspec.json.decode(line)) for line in OWN.read_text(encoding="utf-8").splitlines()]


def shared() -> list[Labelled] | None:
    """The labelled prompts beside the project, which are not part of it; None where they are not."""
    if not SHARED.exists():
        return None
    rows = [msgspec.json.decode(line) for line in SHARED.read_text(encoding="utf-8").splitlines()]
    return [_labelled({**row, "prompt": row["p"], "language": "en"}) for row in rows]


def given(labelled: Labelled, decide: Decide = decide) -> dict[str, bool]:
    """Which blocks the gates give to a prompt."""
    gates = decide(scene(labelled))
    return {
        "files": opens(gates.open_files),
        "diff": opens(gates.patches) or opens(gates.git_diff),
        "tool": opens(gates.retrieval_points_back),
    }


def scene(labelled: Labelled) -> Scene:
    named = re.findall(r"[A-Za-z0-9_/]+\.[a-z]{2,4}\b", labelled.prompt)
    return Scene(
        prompt=labelled.prompt,
        open_files=tuple(dict.fromkeys((*named, *OPEN))),
        identifiers=frozenset(labelled.identifiers),
        patched=PATCHED,
        has_outputs=True,
    )


def scores(prompts: Iterable[Labelled], decide: Decide = decide) -> dict[str, Score]:
    pairs = [(labelled, given(labelled, decide)) for labelled in prompts]
    return {
        block: Score(
            right=sum(bool(getattr(one, block)) and got[block] for one, got in pairs),
            needless=sum(not getattr(one, block) and got[block] for one, got in pairs),
            missed=sum(bool(getattr(one, block)) and not got[block] for one, got in pairs),
        )
        for block in BLOCKS
    }


def table() -> str:
    """All of it, as lines to print."""
    prompts = own()
    groups: list[tuple[str, Sequence[Labelled]]] = [
        (f"own, {half}", [one for one in prompts if one.half == half])
        for half in ("tuned", "held out", "fresh")
    ]
    for language in dict.fromkeys(one.language for one in prompts):
        groups.append((f"own, {language}", [one for one in prompts if one.language == language]))
    others = shared()
    if others is not None:
        groups.append(("shared", others))
    lines = [f"{'prompts':<16}{'n':>5}" + "".join(f"{block + ' P':>9}{'R':>6}{'F1':>6}" for block in BLOCKS)]
    for name, those in groups:
        found = scores(those)
        figures = "".join(f"{s.precision:>9.2f}{s.recall:>6.2f}{s.f1:>6.2f}" for s in found.values())
        lines.append(f"{name:<16}{len(those):>5}{figures}")
    if others is None:
        lines.append("The shared prompts (../shared/evals/gate_prompts.jsonl) are not here: not measured.")
    return "\n".join(lines)


def wrong(prompts: Iterable[Labelled]) -> list[str]:
    """What the gates get wrong, a line each."""
    lines: list[str] = []
    for one in prompts:
        got = given(one)
        faults = [
            f"{'-' if getattr(one, block) else '+'}{block}"
            for block in BLOCKS
            if got[block] != getattr(one, block)
        ]
        if faults:
            lines.append(f"{one.half} {one.language} {' '.join(faults)}: {one.prompt[:100]!r}")
    return lines


def _labelled(row: dict[str, object]) -> Labelled:
    return msgspec.convert(row, Labelled, strict=False)


if __name__ == "__main__":
    said = [table()]
    if "--wrong" in sys.argv:
        # Only of the half that rules may be written by.
        said += wrong(one for one in own() if one.half == "tuned")
    sys.stdout.write("\n".join(said) + "\n")
