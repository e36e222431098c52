"""The official schemas: which definition a frame must match, and what does not match."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

FOLDER = Path(__file__).parent


@cache
def load(version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"v{version}.json").read_text("utf-8"))
    return found


@cache
def definitions(version: int) -> dict[tuple[str, str], str]:
    """The definitions by method and kind: `request`, `result` or `notification`."""
    found = {}
    for name, definition in load(version)["$defs"].items():
        method = definition.get("x-method")
        kind = next((kind for kind in ("Request", "Response", "Notification") if name.endswith(kind)), None)
        if method and kind:
            found[method, kind.lower().replace("response", "result")] = name
    return found


@cache
def _validator(version: int, name: str) -> Any:
    return jsonschema.Draft202012Validator({**load(version), "anyOf": [{"$ref": f"#/$defs/{name}"}]})


def problem(version: int, method: str, kind: str, value: Any) -> str | None:
    """What of a frame does not match the schema; None when all of it does."""
    name = "Error" if kind == "error" else definitions(version).get((method, kind))
    if name is None:
        return f"version {version} has no {kind} {method}"
    best = jsonschema.exceptions.best_match(_validator(version, name).iter_errors(value))
    return f"{name} at {list(best.path)}: {best.message[:500]}" if best else None
