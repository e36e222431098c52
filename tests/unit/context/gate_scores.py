"""How well the gates tell what a prompt needs: precision, recall and F1 of each gate, on labelled prompts.

Two kinds of rows:

- `gate_prompts.jsonl` has 0 or 1 for `files` (the open files), `diff` (the ledger's diffs or the git diff) and
  `tool` (retrieval). Each prompt meets a chat in which the files that it names are open, one other file has a patch,
  and there are outputs to search. Rules were written by looking at half of them.
- `gate_prompts_known.jsonl` and `gate_prompts_blind.jsonl` name the gates that a prompt needs (`wants`) and those
  that are not judged (`either`): `files`, `patches`, `git` (the git diff of a chat without patches), `failure` (the
  git diff after a failure and an edit outside the tools), `retrieval`. Each prompt meets the chat `SHOP`; with
  `"after": "edit"`, its last turn edited `parser.py`. The known half was written with the gates and their rules in
  view. The blind half was written before its author had read them, and no rule is written by looking at it.

    python -m tests.unit.context.gate_scores [--wrong]
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from sidecar.context.gates.decide import Gates, PromptContext, decide_gates, is_open

HERE = Path(__file__).parent
SHARED = Path(__file__).parents[4] / "shared" / "evals" / "gate_prompts.jsonl"
BLOCKS = ("files", "diff", "tool")
GATES = ("files", "patches", "git", "failure", "retrieval")
HALVES = ("known", "blind")

OPEN = ("src/orders.py", "web/cart.ts", "config.toml")
SHOP = PromptContext(
    prompt="",
    open_files=(
        "src/shop/parser.py",
        "src/shop/cart.py",
        "web/checkout.ts",
        "config/settings.toml",
        "README.md",
    ),
    identifiers=frozenset(
        [
            "parse_price",
            "tokenize",
            "Token",
            "Cart",
            "add_item",
            "total_price",
            "apply_discount",
            "submitOrder",
            "useCheckout",
        ]
    ),
    patched=("src/shop/parser.py",),
    has_outputs=True,
)

Decide = Callable[[PromptContext], Gates]


class Labelled(msgspec.Struct, frozen=True):
    prompt: str
    language: str
    half: str
    wants: frozenset[str]
    either: frozenset[str]
    """What is not judged."""

    scene: PromptContext


class Score(msgspec.Struct, frozen=True):
    """Of one gate: prompts that need it and get it, that get it for nothing, and that miss it."""

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
    return [_of_blocks(row) for row in _rows(HERE / "gate_prompts.jsonl")]


def half(name: str) -> list[Labelled]:
    return [_of_gates(row, name) for row in _rows(HERE / f"gate_prompts_{name}.jsonl")]


def shared() -> list[Labelled] | None:
    """The labelled prompts beside the project, which are not part of it; None where they are not."""
    if not SHARED.exists():
        return None
    return [_of_blocks({**row, "prompt": row["p"], "language": "en"}) for row in _rows(SHARED)]


@functools.cache  # the tables count the same prompts in several groups
def given(labelled: Labelled, decide: Decide = decide_gates) -> dict[str, bool]:
    """Which gates open for a prompt. The chat has no patches when `git` is asked, and a file was edited outside
    the tools when `failure` is."""
    scene = labelled.scene
    gates = decide(scene)
    unrecorded = decide(msgspec.structs.replace(scene, patched=(), last_turn_edited=False))
    drifted = decide(msgspec.structs.replace(scene, drifted=True))
    return {
        "files": is_open(gates.open_files),
        "diff": is_open(gates.patches) or is_open(gates.git_diff),
        "tool": is_open(gates.retrieval_points_back),
        "patches": is_open(gates.patches) or gates.patches_if_space,
        "git": is_open(unrecorded.git_diff),
        "failure": is_open(drifted.git_diff) and not is_open(gates.git_diff),
        "retrieval": is_open(gates.retrieval_points_back),
    }


def scores(
    prompts: Iterable[Labelled], decide: Decide = decide_gates, of: Sequence[str] = BLOCKS
) -> dict[str, Score]:
    pairs = [(labelled, given(labelled, decide)) for labelled in prompts]

    def count(name: str, wanted: bool, got: bool) -> int:
        judged = ((one, found) for one, found in pairs if name not in one.either)
        return sum((name in one.wants) is wanted and found[name] is got for one, found in judged)

    return {
        name: Score(
            right=count(name, True, True), needless=count(name, False, True), missed=count(name, True, False)
        )
        for name in of
    }


def table() -> str:
    """All of it, as lines to print."""
    prompts = own()
    kinds = ("tuned", "held out", "fresh")
    groups = [(f"own, {kind}", [one for one in prompts if one.half == kind]) for kind in kinds]
    groups += _by_language("own", prompts)
    others = shared()
    if others is not None:
        groups.append(("shared", others))
    lines = _table(groups, BLOCKS)
    if others is None:
        lines.append("The shared prompts (../shared/evals/gate_prompts.jsonl) are not here: not measured.")
    halves = [(name, half(name)) for name in HALVES]
    by_language = [group for name, those in halves for group in _by_language(name, those)]
    return "\n".join([*lines, "", *_table([*halves, *by_language], GATES)])


def wrong(prompts: Iterable[Labelled], of: Sequence[str] = BLOCKS) -> list[str]:
    """What the gates get wrong, a line each."""
    lines: list[str] = []
    for one in prompts:
        got = given(one)
        faults = [
            f"{'-' if name in one.wants else '+'}{name}"
            for name in of
            if name not in one.either and got[name] is not (name in one.wants)
        ]
        if faults:
            lines.append(f"{one.half} {one.language} {' '.join(faults)}: {one.prompt[:100]!r}")
    return lines


def _rows(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _of_blocks(row: dict[str, Any]) -> Labelled:
    prompt = row["prompt"]
    named = re.findall(r"[A-Za-z0-9_/]+\.[a-z]{2,4}\b", prompt)
    odd = sha256(prompt.encode()).digest()[0] % 2
    return Labelled(
        prompt=prompt,
        language=row["language"],
        # Fresh ones were written last, after which a few rules were widened.
        half="fresh" if row.get("fresh") else "tuned" if odd else "held out",
        wants=frozenset(block for block in BLOCKS if row[block]),
        either=frozenset(),
        scene=PromptContext(
            prompt=prompt,
            open_files=tuple(dict.fromkeys((*named, *OPEN))),
            identifiers=frozenset(row.get("identifiers", ())),
            patched=("lib/stock.py",),
            has_outputs=True,
        ),
    )


def _of_gates(row: dict[str, Any], half: str) -> Labelled:
    after_edit = row.get("after") == "edit"
    return Labelled(
        prompt=row["prompt"],
        language=row["lang"],
        half=half,
        wants=frozenset(row["wants"]),
        either=frozenset(row.get("either", ())),
        scene=msgspec.structs.replace(
            SHOP,
            prompt=row["prompt"],
            last_turn_edited=after_edit,
            file_tool_in_last_3_turns=after_edit,
        ),
    )


def _by_language(name: str, prompts: Sequence[Labelled]) -> list[tuple[str, list[Labelled]]]:
    languages = dict.fromkeys(one.language for one in prompts)
    return [(f"{name}, {lang}", [one for one in prompts if one.language == lang]) for lang in languages]


def _table(groups: Iterable[tuple[str, list[Labelled]]], of: Sequence[str]) -> list[str]:
    lines = [f"{'prompts':<16}{'n':>5}" + "".join(f"{name + ' P':>12}{'R':>6}{'F1':>6}" for name in of)]
    for name, those in groups:
        found = scores(those, of=of).values()
        figures = "".join(f"{s.precision:>12.2f}{s.recall:>6.2f}{s.f1:>6.2f}" for s in found)
        lines.append(f"{name:<16}{len(those):>5}{figures}")
    return lines


if __name__ == "__main__":
    said = [table()]
    if "--wrong" in sys.argv:
        # Only of the halves that rules may be written by.
        said += wrong(one for one in own() if one.half == "tuned")
        said += wrong(half("known"), GATES)
    sys.stdout.write("\n".join(said) + "\n")
