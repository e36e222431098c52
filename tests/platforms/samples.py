"""Makes the small samples of continuous integration from sessions of the real agents:
`python -m tests.platforms.samples DIR`, where `DIR/NAME` is what `tests.platforms.sessions` has written.

The folder becomes `/home/ada`. What only repeats the requests is left out, and long texts of the agents are cut.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from tests.unit.foreign.shown import SAMPLES

from .sessions import PLACES

SKIPPED = ("api-request", "api-request-blob", "api-request-shape")
REPEATED = ("attachment", "system.message", "session_meta", "world_state")
LONG, SHORT, CUT = 1200, 160, 100

DIRECTORY = "/home/ada"
NAMES = (".jsonl", ".project_root", "workspace.yaml")
TABLES = ("session", "message", "part")
"""Of opencode's database."""


def main(folder: Path) -> None:
    for name, place in PLACES.items():
        source, target = folder / name / place, SAMPLES / name
        shutil.rmtree(target, ignore_errors=True)
        if name == "opencode":
            target.mkdir(parents=True)
            (target / "opencode.sql").write_text(_dump(source / "opencode.db", folder / name), "utf-8")
            continue
        for file in sorted(source.rglob("*")):
            if file.is_file() and file.name.endswith(NAMES):
                shown = _renamed(str(file.relative_to(source)), folder / name)
                (target / shown).parent.mkdir(parents=True, exist_ok=True)
                (target / shown).write_text(_trimmed(file, folder / name), "utf-8")


def _renamed(text: str, folder: Path) -> str:
    return text.replace(str(folder).replace("/", "-"), "-home-ada").replace(str(folder), DIRECTORY)


def _trimmed(file: Path, folder: Path) -> str:
    lines = _renamed(file.read_text("utf-8"), folder).splitlines()
    if file.suffix != ".jsonl":
        return "\n".join(lines) + "\n"
    records = [json.loads(line) for line in lines]
    kept = [record for record in records if record.get("type") not in SKIPPED]
    return "".join(json.dumps(_short(record, _limit(record)), ensure_ascii=False) + "\n" for record in kept)


def _limit(record: dict[str, Any]) -> int:
    kind = str(record.get("type"))
    return SHORT if kind in REPEATED or kind.startswith("model.") else LONG


def _short(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit or value.startswith("data:") else value[:CUT] + "…"
    if isinstance(value, list):
        return [_short(each, limit) for each in value[:40]]
    return {key: _short(each, limit) for key, each in value.items()} if isinstance(value, dict) else value


def _dump(file: Path, folder: Path) -> str:
    """The tables that hold sessions, as SQL."""
    db = sqlite3.connect(file)
    lines = [
        f"{sql};"
        for (sql,) in db.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'table' AND name IN (?, ?, ?)", TABLES
        )
    ]
    for table in TABLES:
        for row in db.execute(f"SELECT * FROM {table} ORDER BY 1"):
            values = ", ".join("NULL" if each is None else repr_sql(each) for each in row)
            lines.append(f"INSERT INTO {table} VALUES ({values});")
    return _renamed("\n".join(lines) + "\n", folder)


def repr_sql(value: object) -> str:
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
