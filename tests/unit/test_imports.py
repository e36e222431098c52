"""No module of `sidecar` imports itself through others; imports in functions and lazy modules are counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "sidecar"

Graph = dict[str, set[str]]


def import_graph(source: Path) -> Graph:
    """Every module of the package at `source`, with the modules of that package that it imports."""
    paths = {_module_name(path, source): path for path in source.rglob("*.py")}
    return {
        name: set(_imported_modules(ast.parse(path.read_bytes()), _package_of(name, path), set(paths)))
        - {name}
        for name, path in paths.items()
    }


def find_cycles(graph: Graph) -> list[list[str]]:
    """The largest sets of modules that all reach each other, sorted."""
    reached = {name: _reach(graph, name) for name in graph}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted(sorted(group) for group in groups)


def _reach(graph: Graph, start: str) -> set[str]:
    """What `start` imports, directly and through others; itself only if a cycle leads back to it."""
    found: set[str] = set()
    pending = list(graph[start])
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(graph[name])
    return found


def _module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package_of(name: str, path: Path) -> str:
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


def _imported_modules(tree: ast.AST, package: str, known: set[str]) -> Iterator[str]:
    """The modules in `known` that `tree` imports. Imports for the type checker alone do not run: not counted."""
    for node in _running_nodes(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            stem = _absolute(node, package)
            named = [f"{stem}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_module":
            named = [ast.literal_eval(node.args[0])]
        else:
            continue
        for name in named:
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name:
                yield name


def _running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from _running_nodes(other)
            continue
        yield child
        yield from _running_nodes(child)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert find_cycles(import_graph(SOURCE)) == []


@pytest.mark.parametrize(
    ("files", "cycles"),
    [
        ({"a": "import p.b", "b": "import p.a"}, [["p.a", "p.b"]]),
        ({"a": "from . import b", "b": "from .a import x"}, [["p.a", "p.b"]]),
        ({"a": "def f():\n    from .b import x", "b": "from . import a"}, [["p.a", "p.b"]]),
        (
            {"a": "from .b import x", "b": "from .c import x", "c": "from p.a import x"},
            [["p.a", "p.b", "p.c"]],
        ),
        ({"__init__": "from .a import x", "a": "from . import y"}, [["p", "p.a"]]),
        (
            {"a": "try:\n    from . import b\nexcept ImportError:\n    pass", "b": "import p.a"},
            [["p.a", "p.b"]],
        ),
        (
            {"a": "if TYPE_CHECKING:\n    pass\nelse:\n    from .b import x", "b": "import p.a"},
            [["p.a", "p.b"]],
        ),
        (
            {"a": "import p.b", "b": "import p.a", "c": "from .d import x", "d": "from .c import x"},
            [["p.a", "p.b"], ["p.c", "p.d"]],
        ),
        (
            {
                "a": "if TYPE_CHECKING:\n    from . import b\nelse:\n    b = lazy_module('p.b')",
                "b": "import p.a",
            },
            [["p.a", "p.b"]],
        ),
        (
            {"a": "b = lazy_module('p.b')", "b": "c = lazy_module('p.c')", "c": "a = lazy_module('p.a')"},
            [["p.a", "p.b", "p.c"]],
        ),
        ({"a": "if TYPE_CHECKING:\n    from .b import x", "b": "import p.a"}, []),
        ({"a": "from .b import x", "b": "import json"}, []),
    ],
)
def test_a_cycle_is_found_however_it_is_imported(
    tmp_path: Path, files: dict[str, str], cycles: list[list[str]]
) -> None:
    package = tmp_path / "p"
    package.mkdir()
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text, "utf-8")

    assert find_cycles(import_graph(package)) == cycles
