"""The types of the source: objects of unknown members are few, whatever they are called."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from .pages import ROOT

MAX_UNTYPED = 356
"""Uses of `dict[str, Any]` and of its other names, the fake provider included. Half of what there was before the
packages: what crosses packages is a struct, and JSON of others is `JsonObject`, whose members are checked."""

UNTYPED = ("dict[str, Any]", "MutableMapping[str, Any]")


@cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "sidecar").rglob("*.py"))}


def other_names(trees: list[ast.Module]) -> set[str]:
    """The names that mean an untyped object, in any number of steps."""
    names: set[str] = set()
    assigned = [
        (node.targets[0].id, ast.unparse(node.value))
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    while more := {name for name, value in assigned if value in UNTYPED or value in names} - names:
        names |= more
    return names


def untyped(trees: list[ast.Module]) -> int:
    names = other_names(trees)
    return sum(_is_untyped(node, names) for tree in trees for node in ast.walk(tree))


def _is_untyped(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load) and node.id in names
    return isinstance(node, ast.Subscript) and ast.unparse(node) in UNTYPED


def test_objects_have_types() -> None:
    assert untyped(list(sources().values())) <= MAX_UNTYPED


def test_another_name_for_an_untyped_object_counts() -> None:
    tree = ast.parse(
        "Json = dict[str, Any]\nData = Json\ndef f(a: Json, b: Data, c: dict[str, int]) -> None: ..."
    )

    assert untyped([tree]) == 4
