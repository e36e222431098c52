"""A project on disk for the tests of instruction rules, and a few words for what was read of it."""

from __future__ import annotations

from pathlib import Path

from sidecar.policy.instructions import Instruction, read_rules
from sidecar.workspace.paths import Workspace


def lay_out(top: Path, files: dict[str, str | bytes]) -> Path:
    """Write the files, each beneath `top`."""
    top.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        file = top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return top


def rules_of(top: Path, *paths: str) -> list[Instruction]:
    """The project's rules, with these paths in play."""
    return read_rules(Workspace(str(top)), None, paths)


def one_rule(top: Path, path: str, text: str | bytes) -> Instruction:
    """What becomes of one file in a project that has no other."""
    (rule,) = rules_of(lay_out(top, {path: text}))
    return rule


def problems(rules: list[Instruction]) -> dict[str, str]:
    return {rule.path: rule.problem for rule in rules if rule.problem}
