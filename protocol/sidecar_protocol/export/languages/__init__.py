"""The contract's types in other languages, one module per language, all made from `declarations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .declarations import Contract, contract
from .json_schema import json_schema
from .kotlin import kotlin
from .rust import rust
from .swift import swift
from .typescript import typescript

__all__ = ["LANGUAGES", "Contract", "contract", "json_schema"]

LANGUAGES: Mapping[str, tuple[str, Callable[[Contract], str]]] = {
    "ts": ("sidecar.ts", typescript),
    "swift": ("Sidecar.swift", swift),
    "rust": ("sidecar.rs", rust),
    "kotlin": ("Sidecar.kt", kotlin),
}
"""By the option of `sidecar schema`: the name of the committed file, and what writes it."""
