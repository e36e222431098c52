"""`history/import` and `sidecar import-from`: chats of other programs become chats here, once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json
from tests.unit.foreign.shown import SAMPLES

CLAUDE = "claude-code:7f532d68-39b3-4ff1-9d3b-e9c698947ae7"
CODEX = "codex:01a1f25b-d88e-7f81-8cac-6d6cc49b383d"


def bring(sidecar: Sidecar, platform: str, path: Path | None = None, **more: object) -> Json:
    return sidecar.call("history/import", platform=platform, path=str(path or SAMPLES / platform), **more)


def record(uuid: str, parent: str | None, role: str, text: str, at: str = "2026-11-15T10:00:00Z") -> Json:
    """A record of Claude Code."""
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {
        "type": role,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": at,
        "cwd": "/home/ada/engine",
        "message": {"role": role, "content": content, "model": "claude-opus-5-5"},
    }


def session(folder: Path, *records: Json, name: str = "one") -> Path:
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    return file


def texts(sidecar: Sidecar, chat_id: str) -> list[str]:
    turns = sidecar.call("chat/history", chatId=chat_id)["turns"]
    return [item["text"] for turn in turns for item in turn["items"] if "text" in item]


def test_a_chat_comes_with_its_project_times_title_tools_and_images(sidecar: Sidecar) -> None:
    done = bring(sidecar, "claude-code")

    assert (done["new"], done["grown"], done["problems"]) == (3, 0, [])
    opened = sidecar.call("chat/open", chatId=CLAUDE, ifMissing="fail")
    assert opened["projectPath"] == "/home/ada/my project"
    assert opened["title"].startswith("Please work on it.")
    first = opened["turns"][0]
    assert first["startedAt"] == 1795067455381
    kinds = [item.get("name") or item["type"] for item in first["items"]]
    assert kinds == ["user", "thought", "Write", "Edit", "Bash", "Read", "Bash", "message"]
    (image,) = first["items"][5]["output"]["content"]
    assert sidecar.call("blob/read", blobId=image["blobId"])["mimeType"] == "image/png"
    assert "-two\n+2" in first["items"][3]["changes"][0]["unifiedDiff"]


def test_the_same_import_again_changes_nothing(sidecar: Sidecar) -> None:
    bring(sidecar, "codex")
    before = sidecar.call("chat/open", chatId=CODEX)["lastSeq"]

    again = bring(sidecar, "codex")

    assert (again["new"], again["unchanged"], again["turns"]) == (0, 1, 0)
    assert sidecar.call("chat/open", chatId=CODEX)["lastSeq"] == before


def test_a_chat_that_has_grown_goes_on(sidecar: Sidecar, tmp_path: Path) -> None:
    first = [record("a", None, "user", "One?"), record("b", "a", "assistant", "Yes.")]
    bring(sidecar, "claude-code", session(tmp_path, *first))
    more = [record("c", "b", "assistant", "And more."), record("d", "c", "user", "Two?")]

    done = bring(sidecar, "claude-code", session(tmp_path, *first, *more))

    assert (done["new"], done["grown"], done["turns"]) == (0, 1, 2)
    assert texts(sidecar, "claude-code:one") == ["One?", "Yes.", "And more.", "Two?"]


def test_what_the_user_has_added_here_stays_the_visible_branch(sidecar: Sidecar, tmp_path: Path) -> None:
    first = [record("a", None, "user", "One?"), record("b", "a", "assistant", "Yes.")]
    bring(sidecar, "claude-code", session(tmp_path, *first))
    sidecar.call("chat/open", chatId="claude-code:one")
    sent = sidecar.call("prompt/send", chatId="claude-code:one", promptId="p-1", text="Mine")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    mine = texts(sidecar, "claude-code:one")

    done = bring(sidecar, "claude-code", session(tmp_path, *first, record("c", "b", "user", "Theirs")))

    assert done["grown"] == 1
    assert texts(sidecar, "claude-code:one") == mine
    assert sidecar.call("chat/search", query="Theirs")["items"] != []


def test_a_dry_run_names_the_chats_and_imports_none(sidecar: Sidecar) -> None:
    done = bring(sidecar, "codex", dryRun=True)

    (chat,) = done["chats"]
    assert (chat["chatId"], chat["status"], chat["turns"]) == (CODEX, "new", 4)
    assert sidecar.call("chat/list")["items"] == []


def test_only_chats_of_the_project_and_since_the_date_come(sidecar: Sidecar, tmp_path: Path) -> None:
    session(tmp_path, record("a", None, "user", "Old"))

    elsewhere = bring(sidecar, "claude-code", tmp_path, projectPath="/home/ada/other")
    later = bring(sidecar, "claude-code", tmp_path, since=1795000000000)
    both = bring(sidecar, "claude-code", tmp_path, since=1700000000000, projectPath="/home/ada/engine")

    assert [done["new"] for done in (elsewhere, later, both)] == [0, 0, 1]


def test_a_chat_that_was_deleted_here_does_not_come_back(sidecar: Sidecar) -> None:
    bring(sidecar, "codex")
    sidecar.call("chat/delete", chatId=CODEX)

    again = bring(sidecar, "codex")

    assert (again["new"], again["deleted"]) == (0, 1)


def test_damaged_lines_are_named_and_the_others_are_read(sidecar: Sidecar, tmp_path: Path) -> None:
    file = session(tmp_path, record("a", None, "user", "One?"))
    file.write_text(
        file.read_text() + "{half\n" + json.dumps(record("b", "a", "assistant", "Yes.")) + '\n{"ty'
    )

    done = bring(sidecar, "claude-code", file)

    assert [(each["file"], each["line"]) for each in done["problems"]] == [(str(file), 2), (str(file), 4)]
    assert texts(sidecar, "claude-code:one") == ["One?", "Yes."]


def test_keys_and_tokens_are_redacted(sidecar: Sidecar, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 12
    bring(sidecar, "claude-code", session(tmp_path, record("a", None, "user", f"My key is {key}, use it")))

    assert texts(sidecar, "claude-code:one") == ["My key is (hidden), use it"]
    assert key.encode() not in (tmp_path / "data/sidecar.db").read_bytes()


def test_nothing_of_the_source_is_changed(sidecar: Sidecar, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "claude-code", tmp_path / "source")
    before = state_of(tmp_path / "source")

    bring(sidecar, "claude-code", tmp_path / "source")

    assert state_of(tmp_path / "source") == before


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(file.relative_to(folder)): (
            file.stat().st_mtime_ns,
            file.stat().st_mode,
            file.read_bytes() if file.is_file() else b"",
        )
        for file in sorted(folder.rglob("*"))
    }


def test_the_command_finds_the_sessions_where_the_program_keeps_them(spawn: Spawner) -> None:
    environment = spawn.environment() | {"CODEX_HOME": str(SAMPLES / "codex")}
    command = [sys.executable, "-m", "sidecar", "import-from", "codex"]

    first, again = (
        subprocess.run(command, env=environment, cwd=spawn.folder, capture_output=True, text=True, check=True)
        for _ in range(2)
    )

    assert "1 new chat imported, 0 with more turns, 0 unchanged: 4 turns" in first.stderr
    assert f"sidecar chat --chat {CODEX}" in first.stderr
    assert "0 new chats imported, 0 with more turns, 1 unchanged" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["claude-code", "missing"], "PATH: there is no missing"),
        (["claude-code", "--since", "soon"], "--since: 'soon' is no date"),
        (["netscape"], "invalid choice: 'netscape'"),
    ],
)
def test_wrong_arguments_are_named(spawn: Spawner, arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "sidecar", "import-from", *arguments]
    done = subprocess.run(
        command,
        env=os.environ | spawn.environment(),
        cwd=spawn.folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert said in done.stderr
