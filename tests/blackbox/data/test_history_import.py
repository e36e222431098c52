"""`history/import` and `sidecar import-from`: chats of other programs become chats here, once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.fake_provider import in_thread
from sidecar.foreign.registry import READERS
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json
from tests.unit.foreign.shown import SAMPLES, lay_out, read_all

pytestmark = pytest.mark.slow

CLAUDE = "claude-code:bde120ce-2ff5-4643-a694-b82ed5002b9f"
CODEX = "codex:01a1f284-9a55-7f03-8527-a42f2b1f79cd"


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
    assert first["startedAt"] == 1795070122439
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


def test_a_long_chat_comes_in_several_commits_and_goes_on(sidecar: Sidecar, tmp_path: Path) -> None:
    records = [
        record(f"r{at}", f"r{at - 1}" if at else None, "assistant" if at % 2 else "user", f"Text {at}")
        for at in range(3000)
    ]
    first = bring(sidecar, "claude-code", session(tmp_path, *records[:2000]))
    second = bring(sidecar, "claude-code", session(tmp_path, *records))
    third = bring(sidecar, "claude-code", tmp_path / "one.jsonl")

    assert [(done["new"], done["grown"], done["turns"]) for done in (first, second, third)] == [
        (1, 0, 1000), (0, 1, 500), (0, 0, 0),
    ]  # fmt: skip
    opened = sidecar.call("chat/open", chatId="claude-code:one", tail={"turns": 500})
    assert [item["text"] for turn in opened["turns"] for item in turn["items"]] == [
        f"Text {at}" for at in range(2000, 3000)
    ]


def test_of_a_killed_import_no_half_chat_stays(spawn: Spawner, tmp_path: Path) -> None:
    records = [record(f"r{at}", f"r{at - 1}" if at else None, "user", f"Text {at}") for at in range(6000)]
    file = session(tmp_path, *records)
    killed = spawn()
    killed.ask("history/import", platform="claude-code", path=str(file))
    killed.wait_until(lambda: progress_of(killed) != [], PATIENCE_S, "progress")
    killed.kill()

    sidecar = spawn()
    listed = sidecar.call("chat/list")["items"]
    done = bring(sidecar, "claude-code", file)

    assert listed == []
    assert (done["new"], done["turns"]) == (1, 6000)


def test_a_chat_that_runs_is_named_and_left_for_later(sidecar: Sidecar, tmp_path: Path) -> None:
    first = [record("a", None, "user", "One?"), record("b", "a", "assistant", "Yes.")]
    bring(sidecar, "claude-code", session(tmp_path, *first))
    sidecar.call(
        "chat/configure", chatId="claude-code:one", set={"model": f"scripted:{slow_script(tmp_path)}"}
    )
    sent = sidecar.call("prompt/send", chatId="claude-code:one", promptId="p-1", text="Wait")
    grown = session(tmp_path, *first, record("c", "b", "user", "Two?"))

    during = bring(sidecar, "claude-code", grown)
    sidecar.call("turn/cancel", chatId="claude-code:one", turnId=sent["turnId"])
    after = bring(sidecar, "claude-code", grown)

    assert (during["grown"], "cannot go on" in during["problems"][0]["message"]) == (0, True)
    assert after["grown"] == 1


def slow_script(folder: Path) -> Path:
    script = folder / "script.json"
    script.write_text(json.dumps({"replies": [{"steps": [{"text": "Let me "}, {"hang": True}]}]}))
    return script


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


PLACES = {
    "claude-code": ".claude/projects",
    "codex": ".codex/sessions",
    "gemini-cli": ".gemini/tmp",
    "opencode": ".local/share/opencode",
    "copilot": ".copilot/session-state",
    "qwen-code": ".qwen/projects",
}


def test_the_sessions_are_found_where_each_program_keeps_them(spawn: Spawner) -> None:
    for platform, place in PLACES.items():
        lay_out(platform, spawn.folder / "laid").rename(prepared(spawn.folder / "home" / place))
    sidecar = spawn()

    done = {platform: sidecar.call("history/import", platform=platform) for platform in PLACES}

    assert [each["problems"] for each in done.values()] == [[]] * len(PLACES)
    assert [each["new"] for each in done.values()] == [3, 1, 3, 2, 1, 1]
    found = {
        hit["chatId"].partition(":")[0] for hit in sidecar.call("chat/search", query="Long one")["items"]
    }
    assert found == set(PLACES)


def prepared(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("form", ["folder", "zip", "document"])
@pytest.mark.parametrize(("platform", "chats"), [("chatgpt", 2), ("claude-ai", 1)])
def test_an_export_comes_as_folder_zip_or_document(
    sidecar: Sidecar, tmp_path: Path, platform: str, chats: int, form: str
) -> None:
    path = SAMPLES / platform
    if form == "zip":
        path = Path(shutil.make_archive(str(tmp_path / platform), "zip", path))
    elif form == "document":
        path = path / "conversations.json"

    done = bring(sidecar, platform, path)

    assert (done["new"], done["problems"]) == (chats, [])
    assert bring(sidecar, platform, path)["unchanged"] == chats


def test_an_image_in_a_zip_is_part_of_its_message(sidecar: Sidecar, tmp_path: Path) -> None:
    bring(sidecar, "chatgpt", Path(shutil.make_archive(str(tmp_path / "export"), "zip", SAMPLES / "chatgpt")))

    opened = sidecar.call("chat/open", chatId="chatgpt:6631f0a2-0000-4000-8000-000000000001")
    assert opened["title"] == "Looms and mills"
    assert opened["turns"][0]["items"][0]["content"][0]["type"] == "image"


def test_attached_files_come_along_and_others_are_named(sidecar: Sidecar) -> None:
    bring(sidecar, "chatgpt")

    opened = sidecar.call("chat/open", chatId="chatgpt:6631f0a2-0000-4000-8000-000000000001")
    image, audio, text, left_out, notes = opened["turns"][0]["items"][0]["content"]
    assert sidecar.call("blob/read", blobId=image["blobId"])["mimeType"] == "image/png"
    assert (audio["type"], audio["mimeType"]) == ("audio", "audio/wav")
    assert (text["text"], left_out["text"]) == ("What is this?", "(plan.pdf: not imported)")
    assert (notes["type"], notes["name"]) == ("resource", "notes.txt")
    assert notes["text"] == "The mill is twelve feet wide.\n"


def test_a_file_of_the_export_itself_is_no_attachment(sidecar: Sidecar, tmp_path: Path) -> None:
    named = [{"file_name": name} for name in ("users.json", "conversations.json", "../users.json", "u")]
    said = {"uuid": "m", "sender": "human", "text": "Look", "files": named}
    (tmp_path / "conversations.json").write_text(json.dumps([{"uuid": "a", "chat_messages": [said]}]))
    (tmp_path / "users.json").write_text('"of the account"')

    bring(sidecar, "claude-ai", tmp_path)

    (item,) = sidecar.call("chat/history", chatId="claude-ai:a")["turns"][0]["items"]
    assert [block["text"] for block in item["content"]] == [
        "Look",
        "(users.json: not imported)",
        "(conversations.json: not imported)",
        "(users.json: not imported)",
        "(u: not imported)",
    ]


def test_a_key_in_an_attached_text_is_redacted(sidecar: Sidecar, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 12
    extract = {"file_name": "plan.txt", "extracted_content": f"The key is {key}"}
    said = {"uuid": "m", "sender": "human", "text": "Look", "attachments": [extract]}
    (tmp_path / "conversations.json").write_text(json.dumps([{"uuid": "a", "chat_messages": [said]}]))

    bring(sidecar, "claude-ai", tmp_path)

    (item,) = sidecar.call("chat/history", chatId="claude-ai:a")["turns"][0]["items"]
    assert item["content"][1]["text"] == "The key is (hidden)"


MODELS = ("anthropic:fake-1", "openai:fake-1", "openai-responses:fake-1", "gemini:fake-1", "ollama:fake-1")


@pytest.mark.parametrize("model", MODELS)
def test_each_recorded_chat_goes_on_under_each_api(spawn: Spawner, model: str) -> None:
    with in_thread() as fake:
        sidecar = spawn(model=model, env=fake.env)
        for platform in READERS:
            done = bring(sidecar, platform, lay_out(platform, spawn.folder / "laid"))
            for chat in done["chats"]:
                own = {"chatId": chat["chatId"]}
                sent = sidecar.call("prompt/send", **own, promptId="p-1", text="And now? [[say=On it]]")
                sidecar.wait_turn(sent["sessionId"], sent["turnId"])
                last = sidecar.call("chat/history", **own, limit=1)["turns"][-1]
                assert (last["reason"], last["items"][-1]["text"]) == ("end_turn", "On it"), last


def test_an_export_needs_its_path(sidecar: Sidecar) -> None:
    refused = sidecar.refused("history/import", platform="chatgpt")

    assert refused.detail("field") == "path"


def test_branches_are_branches(sidecar: Sidecar) -> None:
    bring(sidecar, "chatgpt")
    chat = "chatgpt:6631f0a2-0000-4000-8000-000000000001"

    shown = texts(sidecar, chat)
    (turn, _) = sidecar.call("chat/history", chatId=chat)["turns"]
    (other,) = set(turn["siblings"]) - {turn["id"]}
    (branch,) = (each for each in turn["branches"] if each["turnId"] == other)
    sidecar.call("chat/rewind", chatId=chat, to={"turnId": branch["tip"]})

    assert shown[-1] == "You are welcome."
    assert texts(sidecar, chat)[-1] == "It is 42."


def test_changed_files_are_in_the_ledger_and_only_known_bytes_are_reverted(
    sidecar: Sidecar, tmp_path: Path
) -> None:
    project = tmp_path / "engine"
    project.mkdir()
    (project / "known.txt").write_text("after\n")
    (project / "unknown.txt").write_text("after\n")
    shown = {"filePath": str(project / "known.txt"), "originalFile": "before\n", "content": "after\n"}
    lines = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-before", "+after"]}
    partly = {"filePath": str(project / "unknown.txt"), "originalFile": None}
    bring(sidecar, "claude-code", session(
        tmp_path,
        record("a", None, "user", "Change both") | {"cwd": str(project)},
        *edited("known", shown | {"structuredPatch": [lines]}),
        *edited("unknown", partly | {"structuredPatch": [lines]}),
    ))  # fmt: skip
    chat = {"chatId": "claude-code:one"}

    patches = {each["filePath"]: each for each in sidecar.call("patches/list", **chat)["items"]}
    sidecar.call("patches/revert", **chat, path="known.txt")
    refused = sidecar.refused("patches/revert", **chat, path="unknown.txt")

    assert set(patches) == {"known.txt", "unknown.txt"}
    assert (project / "known.txt").read_text() == "before\n"
    assert (project / "unknown.txt").read_text() == "after\n"
    assert "not known" in str(refused)


def edited(name: str, shown: Json) -> list[Json]:
    """A call that edits a file, and its result."""
    call = {"type": "tool_use", "id": name, "name": "Edit", "input": {}}
    made = record(f"{name}-call", "a", "assistant", "")
    made["message"]["content"] = [call]
    ended = record(f"{name}-result", f"{name}-call", "user", "")
    ended["message"]["content"] = [{"type": "tool_result", "tool_use_id": name, "content": "Done"}]
    return [made, ended | {"toolUseResult": shown}]


def test_a_cancel_keeps_what_was_imported(sidecar: Sidecar, tmp_path: Path) -> None:
    for number in range(3000):
        session(tmp_path, record("a", None, "user", f"Chat {number}"), name=f"s{number:04}")
    asked = sidecar.ask("history/import", platform="claude-code", path=str(tmp_path))
    sidecar.wait_until(lambda: progress_of(sidecar) != [], PATIENCE_S, "progress")
    sidecar.notify("$/cancelRequest", id=asked)
    answer = sidecar.answer(asked)

    kept = sidecar.call("chat/list", limit=500)["items"]
    again = bring(sidecar, "claude-code", tmp_path)

    assert answer["error"]["code"] == -32800
    assert again["new"] + again["unchanged"] == 3000
    assert again["unchanged"] >= len(kept) > 0


def progress_of(sidecar: Sidecar) -> list[Json]:
    reports = [frame["params"] for frame in sidecar.frames if frame.get("method") == "status"]
    return [each["data"] for each in reports if each["type"] == "progress"]


def test_progress_is_reported(sidecar: Sidecar, tmp_path: Path) -> None:
    for number in range(3000):
        session(tmp_path, record("a", None, "user", f"Chat {number}"), name=f"s{number:04}")

    bring(sidecar, "claude-code", tmp_path)

    progress = progress_of(sidecar)
    assert progress
    assert {each["kind"] for each in progress} == {"history"}
    assert all(0 < each["done"] <= each["total"] and each["chats"] > 0 for each in progress)


def test_the_command_prints_what_it_brought(spawn: Spawner) -> None:
    lay_out("codex", spawn.folder / "laid").rename(prepared(spawn.folder / "home/.codex/sessions"))
    command = [sys.executable, "-m", "sidecar", "import-from", "codex"]

    first, again = (
        subprocess.run(
            command, env=spawn.environment(), cwd=spawn.folder, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    )

    assert "1 new chat imported, 0 with more turns, 0 unchanged: 4 turns" in first.stderr
    assert f"sidecar chat --chat {CODEX}" in first.stderr
    assert "0 new chats imported, 0 with more turns, 1 unchanged" in again.stderr


def run_command(spawn: Spawner, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", *arguments],
        env=spawn.environment(),
        cwd=spawn.folder,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("platform", ["claude-code", "codex"])
def test_an_exported_chat_is_a_session_with_the_same_conversation(spawn: Spawner, platform: str) -> None:
    lay_out("codex", spawn.folder / "laid")
    run_command(spawn, "import-from", "codex", str(spawn.folder / "laid"))

    said = run_command(spawn, "export-to", platform, CODEX).stderr

    ((id, again),) = read_all(READERS[platform], spawn.folder / "home" / PLACES[platform]).items()
    items = [item for turn in again.turns for item in turn.items]
    calls = ["exec_command", "exec_command", "view_image", "nothing", "exec_command", "exec_command"]
    assert f"resume {id}" in said
    assert [item.name for item in items if item.type == "tool"] == calls
    assert [item.text for item in items if item.type == "message"][-1] == "After compaction"
    assert again.project == "/home/ada/my project"


def test_an_unfinished_turn_says_which_program_ended(spawn: Spawner) -> None:
    run_command(spawn, "import-from", "codex", str(SAMPLES / "codex"))

    assert "interrupted: codex ended before the answer did" in run_command(spawn, "show", CODEX).stdout


def test_a_chat_is_exported_as_markdown_for_other_programs(spawn: Spawner) -> None:
    run_command(spawn, "import-from", "chatgpt", str(SAMPLES / "chatgpt"))

    run_command(spawn, "export-to", "gemini-cli", "chatgpt:6631f0a2-0000-4000-8000-000000000001", "mill.md")

    assert (spawn.folder / "mill.md").read_text().startswith("# Looms and mills\n")


def test_agents_find_the_chats_by_search(spawn: Spawner) -> None:
    project = spawn.folder / "engine"
    project.mkdir()
    records = [record("a", None, "user", "How wide is the heron mill?") | {"cwd": str(project)}]
    file = session(spawn.folder, *records)
    run_command(spawn, "import-from", "claude-code", str(file))
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "search_chats",
            "arguments": {"query": "heron"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }

    with subprocess.Popen(
        [sys.executable, "-m", "sidecar", "mcp"],
        env=spawn.environment(),
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        server.stdin.close()

    assert "heron mill" in answer


CHATS = 6000
"""An import of several seconds."""


def test_ctrl_c_stops_the_command_and_keeps_what_came(spawn: Spawner) -> None:
    folder = spawn.folder / "sessions"
    folder.mkdir()
    for number in range(CHATS):
        session(folder, record("a", None, "user", f"Chat {number}"), name=f"s{number:04}")
    command = [sys.executable, "-m", "sidecar", "import-from", "claude-code", str(folder)]
    # It runs before the import begins: the first chat is noticed long before the last one is there.
    watcher = spawn()
    with subprocess.Popen(
        command,
        env=spawn.environment(),
        cwd=spawn.folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        watcher.wait_until(lambda: bool(changed_chats(watcher)), PATIENCE_S, "a chat of the import")
        os.killpg(running.pid, signal.SIGINT)
        assert running.stderr is not None
        said = running.stderr.read()

    assert running.returncode == 130
    assert "the same command brings the others" in said
    done = bring(watcher, "claude-code", folder)
    assert (done["new"] + done["unchanged"], done["unchanged"] > 0) == (CHATS, True)


def changed_chats(sidecar: Sidecar) -> list[Json]:
    reports = [frame["params"] for frame in sidecar.frames if frame.get("method") == "status"]
    return [each for each in reports if each["type"] == "chats.changed"]


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
