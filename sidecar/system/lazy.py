"""Modules that are imported when one of their names is first used.

    if TYPE_CHECKING:
        from .repair import recovery
    else:
        recovery = lazy_module("sidecar.store.repair.recovery")

The type checker and the import contracts read the first branch, the interpreter runs the second one. Both are
`lazy from .repair import recovery` in Python 3.15 (PEP 810).
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class LazyModule:
    """Stands for a module."""

    __slots__ = ("_loaded", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # Debuggers and test runners look for such names in every object; that must not import anything.
            raise AttributeError(name)
        return getattr(self._loaded or load(self), name)

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazy_module(name: str) -> LazyModule:
    """Return a stand-in for the module with this absolute name."""
    return LazyModule(name)


def load(module: ModuleType | LazyModule) -> ModuleType:
    """Import the module now, if it is lazy, and return it."""
    if not isinstance(module, LazyModule):
        return module
    module._loaded = import_module(module._name)
    return module._loaded
