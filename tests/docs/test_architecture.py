"""The drawings of ARCHITECTURE.md are true, and every file and module that it and CONTRIBUTING.md name exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from sidecar_protocol.catalog import METHODS

from .pages import ARCHITECTURE, CONTRIBUTING, ROOT, blocks, code

MAX_LINES = 200

PACKAGES = {
    "sidecar": ROOT / "sidecar",
    "sidecar_protocol": ROOT / "protocol" / "sidecar_protocol",
    "sidecar_client": ROOT / "clients" / "python" / "sidecar_client",
    "tests": ROOT / "tests",
}

_PATH = re.compile(r"(?!\.venv/)\.?[\w-]+(?:/[\w.*-]+)+/?|[\w-]+\.(?:py|md|toml|sql|json|txt)")
_MODULE = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")


def contracts() -> dict[str, list[str]]:
    """The layers of each package, as import-linter checks them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        found = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return {each["containers"][0]: each["layers"] for each in found if each["type"] == "layers"}


def drawn_layers(page: str, package: str) -> list[tuple[str, str]]:
    """The layers in the drawing of a package, and what is said of each."""
    _, _, after = page.partition(f"\n`{package}`")
    lines = re.sub(r"\n +", " ", blocks(after, "")[0]).splitlines()
    return [(layer, words) for layer, words in (re.split(r" {2,}", line, maxsplit=1) for line in lines)]


def named_files(page: str) -> set[str]:
    """What a page names as a file or a folder, in code or as the text of a link. Methods of the contract look alike."""
    words = {word for span in code(page) for word in span.split()}
    return {word for word in words if _PATH.fullmatch(word) and word not in METHODS}


def named_modules(page: str) -> set[str]:
    """What a page names as a module of ours, with what stands in it."""
    return {word for span in code(page) for word in span.split() if _MODULE.fullmatch(word)}


def file_exists(name: str) -> bool:
    """Whether a path leads somewhere, from the root or within the program."""
    return any(any(base.glob(name.rstrip("/"))) for base in (ROOT, ROOT / "sidecar"))


def module_exists(name: str) -> bool:
    """Whether a dotted name is a module, or what the module before its last dot defines."""
    package, *parts = name.split(".")
    path = PACKAGES[package].joinpath(*parts)
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    source = next((each for each in _sources(path.parent) if each.exists()), None)
    return source is not None and re.search(rf"\b{path.name}\b", source.read_text("utf-8")) is not None


def _sources(path: Path) -> list[Path]:
    return [path.with_suffix(".py"), path / "__init__.py"]


def _subpackages(name: str) -> set[str]:
    return {path.parent.name for path in (ROOT / "sidecar" / name).glob("*/__init__.py")}


@pytest.mark.parametrize("package", ["sidecar", "sidecar.chat", "sidecar.store"])
def test_a_drawing_shows_the_layers_that_are_checked(package: str) -> None:
    drawn = [layer for layer, _ in drawn_layers(ARCHITECTURE, package.replace(".", "/"))]

    assert drawn == contracts()[package]


def test_the_drawing_names_every_package_and_no_other() -> None:
    drawn = {name for layer, _ in drawn_layers(ARCHITECTURE, "sidecar") for name in layer.split(" | ")}
    packages = _subpackages(".")
    modules = {path.stem for path in (ROOT / "sidecar").glob("*.py")} - {"__init__"}

    assert drawn == packages | modules


def test_the_drawing_names_the_subpackages_of_each_package() -> None:
    drawn_apart = {"chat", "store"}
    drawn = {
        name: set(re.findall(r"(\w+)/(?!\w)", words))
        for layer, all_words in drawn_layers(ARCHITECTURE, "sidecar")
        for name, words in zip(layer.split(" | "), all_words.split(" | "), strict=True)
        if name not in drawn_apart
    }

    assert drawn == {name: _subpackages(name) for name in drawn}


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=["architecture", "contributing"])
def test_every_file_and_module_named_exists(page: str) -> None:
    missing = [name for name in sorted(named_files(page)) if not file_exists(name)]
    missing += [name for name in sorted(named_modules(page)) if not module_exists(name)]

    assert missing == []
    assert len(named_files(page)) > 10


def test_the_page_is_read_to_the_end() -> None:
    assert len(ARCHITECTURE.splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    ("title", "most"),
    [("Walk: what is sent to the model", 9), ("Walk: the model calls `edit_file`", 7)],
)
def test_a_walk_opens_few_files_and_each_of_them_exists(title: str, most: int) -> None:
    _, _, walk = ARCHITECTURE.partition(f"\n## {title}\n")
    steps = re.findall(r"^(\d+)\. `([\w/]+\.py)`: ", walk.partition("\n## ")[0], re.MULTILINE)

    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 5 < len(steps) <= most
    assert [file for _, file in steps if not (ROOT / "sidecar" / file).exists()] == []


@pytest.mark.parametrize(
    "name",
    [
        "rpc/stdin.py",
        "sidecar/rpc/stdin.py",
        "chat/answering",
        "store/tables/*.sql",
        "tests/unit/none",
        "HOUSE.md",
    ],
)
def test_a_file_that_is_not_there_is_found(name: str) -> None:
    assert [file for file in named_files(f"See `{name}` there.") if not file_exists(file)] == [name]


@pytest.mark.parametrize(
    "name",
    [
        "sidecar.house",
        "sidecar.rpc.stdio.Outlet",
        "sidecar_protocol.methods.none",
        "sidecar_client.App",
        "tests.docs.none",
    ],
)
def test_a_module_that_is_not_there_is_found(name: str) -> None:
    assert [each for each in named_modules(f"Run `python -m {name}`.") if not module_exists(each)] == [name]


@pytest.mark.parametrize("span", ["chat/open", "store.turns.page(…)", "make test", "{a,b}", "[local]"])
def test_what_is_no_file_of_ours_is_not_looked_for(span: str) -> None:
    assert named_files(f"`{span}`") == set()
    assert named_modules(f"`{span}`") == set()
