"""The recorded sessions of each program are read as they were seen there."""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest

from sidecar.foreign.registry import READERS

from .shown import SAMPLES, lay_out, read_all, shown

PLATFORMS = sorted(path.stem for path in SAMPLES.glob("*.txt"))


def described(platform: str, folder: Path) -> str:
    """All chats of a sample, with their title and project."""
    lines: list[str] = []
    for id, chat in sorted(read_all(READERS[platform], lay_out(platform, folder)).items()):
        problems = [f"  problem at line {each.line}: {each.message}" for each in chat.problems]
        lines += [f"# {id}", f"{chat.title} in {chat.project}", *problems, *shown(chat), ""]
    return "\n".join(lines)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_recorded_session_is_read_whole(platform: str, tmp_path: Path) -> None:
    assert described(platform, tmp_path) == (SAMPLES / f"{platform}.txt").read_text("utf-8")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_session_has_the_same_ids_at_each_reading(platform: str, tmp_path: Path) -> None:
    source = lay_out(platform, tmp_path)
    first, second = (read_all(READERS[platform], source) for _ in range(2))

    ids = [item.id for chat in first.values() for turn in chat.turns for item in turn.items]
    assert first == second
    assert len(set(ids)) == len(ids) > 0


def test_opencode_is_read_from_its_older_files_too(tmp_path: Path) -> None:
    """As its versions before the database kept them; written from the rows of the recorded one, not recorded."""
    folder = lay_out("opencode", tmp_path)
    recorded = read_all(READERS["opencode"], folder)
    storage = tmp_path / "files" / "storage"
    db = sqlite3.connect(folder / "opencode.db")
    for id, directory, title, created, updated in db.execute(
        "SELECT id, directory, title, time_created, time_updated FROM session"
    ):
        session = {"directory": directory, "title": title, "time": {"created": created, "updated": updated}}
        put(storage / "session" / "global" / f"{id}.json", json.dumps(session))
    for id, session_id, data in db.execute("SELECT id, session_id, data FROM message"):
        put(storage / "message" / session_id / f"{id}.json", data)
    for id, message_id, data in db.execute("SELECT id, message_id, data FROM part"):
        put(storage / "part" / message_id / f"{id}.json", data)
    db.close()

    assert read_all(READERS["opencode"], tmp_path / "files") == recorded


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_every_program_has_a_sample() -> None:
    assert set(PLATFORMS) == set(READERS)


def write(platforms: list[str]) -> None:
    """Write what is read: read the difference before you commit it."""
    for platform in platforms or READERS:
        with tempfile.TemporaryDirectory() as folder:
            (SAMPLES / f"{platform}.txt").write_text(described(platform, Path(folder)), "utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
