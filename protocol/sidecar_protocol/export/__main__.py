"""Write what is generated from the table: `openrpc.json`, types for other languages, the reference, its examples."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from . import event_examples, examples
from .document import document
from .languages import LANGUAGES, contract, json_schema
from .reference import pages

PROTOCOL = Path(__file__).parents[2]
TYPES = PROTOCOL / "types"
CLIENTS = PROTOCOL.parent / "clients"
TYPESCRIPT = CLIENTS / "typescript" / "src" / "protocol.ts"
SWIFT = CLIENTS / "swift" / "Sources" / "SidecarClient" / "Protocol.swift"
"""The clients' own copies: a package has only files of its folder."""


def main() -> None:
    for path, text in generate_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def generate_files() -> dict[Path, str]:
    """Every generated file and what it should hold."""
    found = examples.from_transcripts(PROTOCOL / "transcripts")
    events = event_examples.event_examples(PROTOCOL / "transcripts")
    return {
        event_examples.FILE: _json(events),
        examples.FILE: _json({name: msgspec.to_builtins(example) for name, example in found.items()}),
        PROTOCOL / "openrpc.json": _json(document(found)),
        TYPES / "sidecar.schema.json": _json(json_schema()),
        **{TYPES / name: write(contract()) for name, write in LANGUAGES.values()},
        TYPESCRIPT: LANGUAGES["ts"][1](contract()),
        SWIFT: LANGUAGES["swift"][1](contract()),
        **{PROTOCOL / path: text for path, text in pages(found, events).items()},
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
