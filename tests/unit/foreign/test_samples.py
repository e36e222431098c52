"""The recorded sessions of each program are read as they were seen there."""

from __future__ import annotations

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


def test_every_program_has_a_sample() -> None:
    assert set(PLATFORMS) == set(READERS)


def write(platforms: list[str]) -> None:
    """Write what is read: read the difference before you commit it."""
    for platform in platforms or READERS:
        with tempfile.TemporaryDirectory() as folder:
            (SAMPLES / f"{platform}.txt").write_text(described(platform, Path(folder)), "utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
