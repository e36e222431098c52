"""Imports at other places than the top of a module: lazy modules name what the type checker reads, and imports in
functions are few and allowed by file."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    "sidecar": ROOT,
    "protocol/sidecar_protocol": ROOT / "protocol",
    "clients/python": ROOT / "clients/python",
}

MAX_IN_FUNCTIONS = 20
"""Imports in functions. A new one needs a reason that a lazy module does not meet; pyproject.toml lists them."""


def lazy_problems(text: str, package: str) -> list[str]:
    """What is wrong with the lazy modules in the text of a module of this package."""
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if _is_lazy_call(node)]
    problems: list[str] = []
    seen = 0
    for block in tree.body:
        if not (isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"):
            continue
        read = dict(_imported_names(block.body, package))
        for name, module in _lazy_names(block.orelse):
            seen += 1
            if read.get(name) != module:
                problems.append(f"{name} is {module}, and {read.get(name)} for the type checker")
    if seen != len(calls):
        problems.append("lazy_module belongs into the `else` of `if TYPE_CHECKING`")
    return problems


def _is_lazy_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_module"


def _lazy_names(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement in statements:
        if isinstance(statement, ast.Assign) and _is_lazy_call(statement.value):
            assert isinstance(statement.value, ast.Call)
            yield ast.unparse(statement.targets[0]), ast.literal_eval(statement.value.args[0])


def _imported_names(statements: list[ast.stmt], package: str) -> Iterator[tuple[str, str]]:
    """The names that these imports bind, with the module that each would be."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - statement.level + 1] if statement.level else []
            stem = ".".join([*base, *([statement.module] if statement.module else [])])
            yield from ((alias.asname or alias.name, f"{stem}.{alias.name}") for alias in statement.names)


def imports_in_functions(text: str) -> list[int]:
    """The lines of imports within functions."""
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    found = (
        node.lineno
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return sorted(set(found))


def source_files() -> Iterator[tuple[Path, str]]:
    """Every module of ours, with the package that it is in."""
    for folder, root in SOURCES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, ".".join(path.relative_to(root).parent.parts)


def allowed_files() -> list[str]:
    """The files outside of the tests in which ruff allows imports in functions."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    return [
        pattern
        for pattern, ignored in rules["per-file-ignores"].items()
        if "PLC0415" in ignored and not fnmatch("tests/any.py", pattern)
    ]


def test_a_lazy_module_is_the_one_that_the_type_checker_reads() -> None:
    found = {
        str(path.relative_to(ROOT)): lazy_problems(path.read_text("utf-8"), package)
        for path, package in source_files()
        if path.name != "lazy.py"
    }

    assert {path: problems for path, problems in found.items() if problems} == {}


def test_imports_in_functions_are_few_and_each_file_is_allowed_by_name() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path, _ in source_files()
        if (lines := imports_in_functions(path.read_text("utf-8")))
    }

    assert sorted(found) == sorted(allowed_files())
    assert sum(map(len, found.values())) <= MAX_IN_FUNCTIONS


TEXT = "if TYPE_CHECKING:\n    {read}\nelse:\n    {run}\n"


@pytest.mark.parametrize(
    ("read", "run"),
    [
        ("import json", "json = lazy_module('json')"),
        ("from email import utils as mail", "mail = lazy_module('email.utils')"),
        ("from . import b", "b = lazy_module('p.q.b')"),
        ("from .. import b", "b = lazy_module('p.b')"),
        ("from ..r import b as c", "c = lazy_module('p.r.b')"),
    ],
)
def test_a_lazy_module_of_the_same_name_passes(read: str, run: str) -> None:
    assert lazy_problems(TEXT.format(read=read, run=run), "p.q") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TEXT.format(read="import json", run="json = lazy_module('jsonx')"), "json is jsonx, and json"),
        (TEXT.format(read="from . import b", run="b = lazy_module('p.b')"), "b is p.b, and p.q.b"),
        (TEXT.format(read="from .b import c", run="c = lazy_module('p.q.c')"), "c is p.q.c, and p.q.b.c"),
        (TEXT.format(read="from . import b", run="c = lazy_module('p.q.b')"), "c is p.q.b, and None"),
        ("json = lazy_module('json')", "belongs into the `else`"),
        ("def f():\n    json = lazy_module('json')", "belongs into the `else`"),
    ],
)
def test_another_lazy_module_is_a_problem(text: str, problem: str) -> None:
    (found,) = lazy_problems(text, "p.q")

    assert problem in found


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import a\ndef f():\n    import b", [3]),
        ("async def f():\n    from b import c", [2]),
        ("class A:\n    def f(self):\n        try:\n            import b\n        except OSError: ...", [4]),
        ("def f():\n    def g():\n        import b", [3]),
        ("import a\nif a:\n    import b\nclass C:\n    import d", []),
    ],
)
def test_imports_in_functions_are_found(text: str, lines: list[int]) -> None:
    assert imports_in_functions(text) == lines
