"""A lazy module is imported when one of its names is used, once, and not before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sidecar.system.lazy import lazy_module, load


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules, named `lazy_*`, can be imported during the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("lazy_")]:
        del sys.modules[name]


def test_a_module_is_imported_at_the_first_use_of_a_name(folder: Path) -> None:
    (folder / "lazy_plain.py").write_text("ANSWER = 42\n", "utf-8")
    module = lazy_module("lazy_plain")

    assert "lazy_plain" not in sys.modules
    assert module.ANSWER == 42
    assert "lazy_plain" in sys.modules


def test_a_module_within_a_package_is_found(folder: Path) -> None:
    (folder / "lazy_package").mkdir()
    (folder / "lazy_package" / "__init__.py").write_text("", "utf-8")
    (folder / "lazy_package" / "inner.py").write_text("def ask():\n    return 'inner'\n", "utf-8")

    assert lazy_module("lazy_package.inner").ask() == "inner"


def test_a_name_that_is_replaced_in_the_module_is_the_new_one(folder: Path) -> None:
    (folder / "lazy_replaced.py").write_text("ANSWER = 1\n", "utf-8")
    module = lazy_module("lazy_replaced")
    assert module.ANSWER == 1

    sys.modules["lazy_replaced"].ANSWER = 2  # type: ignore[attr-defined]

    assert module.ANSWER == 2


def test_a_missing_module_is_an_import_error_at_its_use() -> None:
    module = lazy_module("lazy_and_missing")

    with pytest.raises(ModuleNotFoundError, match="lazy_and_missing"):
        module.anything  # noqa: B018


def test_a_missing_name_is_the_error_of_the_module() -> None:
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'nothing'"):
        lazy_module("json").nothing  # noqa: B018


def test_an_import_that_failed_is_tried_again(folder: Path) -> None:
    broken = folder / "lazy_broken.py"
    broken.write_text("raise OSError('the disk is slow')\n", "utf-8")
    module = lazy_module("lazy_broken")
    with pytest.raises(OSError, match="slow"):
        module.ANSWER  # noqa: B018

    broken.write_text("ANSWER = 'after all, it is here'\n", "utf-8")

    assert module.ANSWER == "after all, it is here"


@pytest.mark.parametrize("name", ["__wrapped__", "__path__", "__deepcopy__", "__iter__", "__len__"])
def test_looking_at_it_imports_nothing(name: str) -> None:
    module = lazy_module("lazy_and_missing")

    assert not hasattr(module, name)
    assert repr(module) == "<lazy module 'lazy_and_missing'>"


def test_it_cannot_be_changed() -> None:
    module = lazy_module("json")

    with pytest.raises(AttributeError):
        module.loads = print  # type: ignore[attr-defined]


def test_loading_imports_at_once_and_returns_the_module(folder: Path) -> None:
    (folder / "lazy_loaded.py").write_text("ANSWER = 42\n", "utf-8")

    loaded = load(lazy_module("lazy_loaded"))

    assert isinstance(loaded, ModuleType)
    assert loaded is sys.modules["lazy_loaded"]
    assert load(loaded) is loaded


def test_a_thread_never_sees_a_module_half_imported(folder: Path) -> None:
    """The module waits while it is imported; a second thread asks for its last name meanwhile."""
    (folder / "lazy_slow.py").write_text(
        "from lazy_events import begun, may_end\nbegun.set()\nassert may_end.wait(30)\nLAST = 1\n", "utf-8"
    )
    (folder / "lazy_events.py").write_text(
        "import threading\nbegun, may_end = threading.Event(), threading.Event()\n", "utf-8"
    )
    events, module, found = load(lazy_module("lazy_events")), lazy_module("lazy_slow"), list[int]()
    asking = [threading.Thread(target=lambda: found.append(module.LAST)) for _ in range(2)]
    asking[0].start()
    assert events.begun.wait(30)
    asking[1].start()
    events.may_end.set()
    for thread in asking:
        thread.join(30)

    assert found == [1, 1]
