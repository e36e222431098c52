"""What the sidecar promises of its pipes, its process and other processes, to an editor as to every client."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path

import pytest

from sidecar.fake_provider import in_thread
from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.scripts import write_script
from tests.support.sidecar import EXIT_WITHIN
from tests.support.spawner import Spawner
from tests.support.wire import Json

from .conftest import Start
from .editor import COMMAND, Editor, Refused

TEXT = " ".join("w" * 59 + f"{number:05}" for number in range(20_000))
"""More than the pipe and all that is kept for a client hold."""

GROWTH = 64 * 1024 * 1024


def initialize(id: int = 1) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocolVersion": 1}}


def new(id: int, folder: Path) -> Json:
    params = {"cwd": str(folder), "mcpServers": [], "_meta": {"sidecar": {"chatId": "tab-7"}}}
    return {"jsonrpc": "2.0", "id": id, "method": "session/new", "params": params}


def prompt(id: int, text: str) -> Json:
    params = {"sessionId": "sc-tab-7-bf133f99bd6e5d06", "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}


def run(environment: dict[str, str], folder: Path, sent: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        COMMAND, input=sent, env=environment, cwd=folder, capture_output=True, timeout=PATIENCE_S, check=False
    )


def test_what_is_sent_before_the_program_is_up_is_answered_in_its_turn(tmp_path: Path, project: Path) -> None:
    """All of it in one write, and then the end of stdin."""
    messages = [
        initialize(),
        new(2, project),
        prompt(3, "/help"),
        {**initialize(4), "method": "session/list"},
    ]

    done = run(Spawner(tmp_path).environment(), project, lines(messages))

    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(frame["id"] for frame in frames if "id" in frame) == [1, 2, 3, 4]
    assert (frames[0]["id"], done.returncode) == (1, 0)


def lines(messages: list[Json]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_header_framing_is_answered_by_header_framing(tmp_path: Path, project: Path) -> None:
    bodies = [json.dumps(message).encode() for message in (initialize(), new(2, project))]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)

    done = run(Spawner(tmp_path).environment(), project, sent)

    head, _, rest = done.stdout.partition(b"\r\n\r\n")
    length = int(head.removeprefix(b"Content-Length: "))
    assert json.loads(rest[:length])["result"]["protocolVersion"] == 1
    assert rest[length:].startswith(b"Content-Length: ")
    assert b'"id":2' in rest[length:]


def test_an_editor_that_stops_reading_loses_nothing_and_memory_stays_bounded(start: Start) -> None:
    editor, watcher = start(), start()
    session = editor.new("tab-7")
    before = processes.rss_bytes(editor.process.pid)
    editor.pause_reading()
    sent = editor.send_prompt(session, TEXT)

    watcher.new("tab-7")
    watcher.wait_update("agent_message_chunk")
    while watcher.said() != TEXT:
        watcher.wait_updates(len(watcher.updates) + 1)
    grown = processes.rss_bytes(editor.process.pid) - before
    editor.resume_reading()

    assert editor.wait(sent)["stopReason"] == "end_turn"
    assert editor.said() == TEXT
    assert grown < GROWTH


def test_the_end_of_stdin_is_noticed_while_nobody_reads(start: Start) -> None:
    editor = start()
    session = editor.new()
    editor.pause_reading()
    editor.send_prompt(session, TEXT)
    assert editor.process.stdin is not None
    editor.process.stdin.close()

    assert processes.wait_until_gone(editor.process.pid, EXIT_WITHIN)
    editor.resume_reading()
    editor.drain()


def test_a_key_is_in_no_frame_no_file_and_no_log(start: Start, tmp_path: Path) -> None:
    key, log = f"sk-canary-{uuid.uuid4().hex}", tmp_path / "log.jsonl"
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[log]\nlevel = "trace"\nfile = "{log}"\n')
    with in_thread() as fake:
        environment = fake.env | {"OPENAI_API_KEY": key, "SIDECAR_CONFIG": str(settings)}
        editor = start(model="openai:fake-1", env=environment)
        session = editor.new()
        editor.prompt(session, "Hello [[say=Hi]]")
        for command in ("/context", "/stats", "/session", "/help"):
            editor.prompt(session, command)
        editor.load(session)
        editor.close()

    kept = [file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file()]
    assert "Hi" in editor.said()
    assert key.encode() not in b"".join([*kept, log.read_bytes(), json.dumps(editor.updates).encode()])


def test_two_equal_prompts_at_once_run_once(editor: Editor) -> None:
    session = editor.new()
    own = {"_meta": {"sidecar": {"promptId": "p-1"}}}

    ids = [editor.send_prompt(session, "Hello", **own) for _ in range(2)]

    assert [editor.wait(id)["stopReason"] for id in ids] == ["end_turn", "end_turn"]
    said = [each["content"]["text"] for each in editor.load(session) if "content" in each]
    assert said == ["Hello", "Hello"]


def test_sessions_run_side_by_side(start: Start, tmp_path: Path) -> None:
    editor = start(model=write_script(tmp_path))
    waiting, other = editor.new(), editor.new()
    hanging = editor.send_prompt(waiting, "hang")
    editor.wait_update("agent_message_chunk")

    assert editor.prompt(other, "Hello")["stopReason"] == "end_turn"
    editor.notify("session/cancel", sessionId=waiting)
    assert editor.wait(hanging)["stopReason"] == "cancelled"


def test_a_session_that_was_deleted_elsewhere_says_so(start: Start) -> None:
    first, second = start(), start()
    session = first.new("tab-7")
    first.prompt(session, "Hello")
    second.load(session)

    first.request("session/delete", sessionId=session)

    with pytest.raises(Refused) as refused:
        second.prompt(session, "Hello?")
    assert refused.value.code == -32002
    assert second.request("session/list")["sessions"] == []


def test_a_new_title_is_shown_whoever_gave_it(start: Start, tmp_path: Path) -> None:
    editor = start()
    session = editor.new("tab-7")
    editor.prompt(session, "Hello")
    spawn = Spawner(tmp_path)
    try:
        spawn().call("chat/rename", chatId="tab-7", title="The heron mill")
        editor.wait_update("session_info_update", title="The heron mill")
    finally:
        spawn.settle()

    (listed,) = editor.request("session/list")["sessions"]
    assert listed["title"] == "The heron mill"


def test_a_text_that_is_too_long_is_refused_by_name(editor: Editor) -> None:
    session = editor.new()

    with pytest.raises(Refused, match=r"`prompt.0..text`") as refused:
        editor.prompt(session, "x" * (17 * 1024 * 1024))

    assert refused.value.code == -32602
    assert editor.prompt(session, "Hello")["stopReason"] == "end_turn"
