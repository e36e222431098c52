"""Writes the schemas from the folder of the npm package that has them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from . import FOLDER


def without_descriptions(value: Any, *, names: bool = False) -> Any:
    """The value without descriptions; `names` says that its keys are names that the protocol gives."""
    if isinstance(value, dict):
        return {
            key: without_descriptions(part, names=key in ("properties", "$defs") and not names)
            for key, part in value.items()
            if names or key != "description"
        }
    return [without_descriptions(part) for part in value] if isinstance(value, list) else value


def schema_text(package: Path, version: int) -> str:
    """The file for a version: one line for each definition."""
    schema = without_descriptions(json.loads((package / f"schema/v{version}/schema.json").read_text("utf-8")))
    lines = [
        f"{json.dumps(name)}: {json.dumps(part, separators=(',', ':'))}"
        for name, part in schema["$defs"].items()
    ]
    head = json.dumps({key: part for key, part in schema.items() if key not in ("$defs", "anyOf")})
    return head[:-1] + ', "$defs": {\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    for version in (1, 2):
        (FOLDER / f"v{version}.json").write_text(schema_text(Path(sys.argv[1]), version), "utf-8")
