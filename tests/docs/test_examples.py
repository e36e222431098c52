"""What the README and the pages show runs as it stands, against the real sidecar."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.support.spawner import Spawner

from .conftest import Folder
from .pages import EMBED, PROVIDERS, README, ROOT, SHIPPING, TERMINAL, block_with, blocks

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def test_the_python_example_streams_and_its_second_run_resumes(folder: Folder) -> None:
    (example,) = blocks(README, "python")
    (folder.path / "example.py").write_text(example, "utf-8")

    runs = [folder.run(".venv/bin/python", "example.py").splitlines() for _ in range(2)]

    assert runs == [
        ["created, turns so far: 0", "Do not forget this"],
        ["resumed, turns so far: 1", "Do not forget this"],
    ]


@pytest.mark.sampled(1)
@needs_node
@pytest.mark.parametrize("missed", ["Missed words", "line\u2028separator", "two\nlines", "😀", "a" * 70_000])
def test_the_node_example_resumes_with_what_it_missed(folder: Folder, missed: str) -> None:
    (example,) = blocks(README, "js")
    (folder.path / "example.mjs").write_text(example, "utf-8")

    first = folder.run("node", "example.mjs")
    seen = json.loads((folder.path / "cursor.json").read_text("utf-8"))["seq"]
    folder.run(".venv/bin/sidecar", "chat", "--chat", "tab-7", "--no-project", missed)
    second = folder.run("node", "example.mjs")

    assert first == "created, replay from seq: none\nDo not forget this [end_turn]\n"
    assert second == (
        f"resumed, replay from seq: {seen + 1}\n{missed} [end_turn]\nDo not forget this [end_turn]\n"
    )


def test_the_examples_of_the_readme_are_short() -> None:
    lengths = [len(example.splitlines()) for kind in ("python", "js") for example in blocks(README, kind)]

    assert [length <= limit for length, limit in zip(lengths, (20, 45), strict=True)] == [True, True]


def test_the_messages_by_hand_bring_what_is_shown(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    lines = block_with(EMBED, "json", "initialize").splitlines()
    requests = [json.loads(line) for line in lines]

    for line, request in zip(lines, requests, strict=True):
        sidecar.referee.asked(request["id"], request["method"], request["params"])
        sidecar.send_bytes(line.encode() + b"\n")
    sent = sidecar.result(requests[-1]["id"])
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    came = [
        f'"result":{{"sessionId":"{sent["sessionId"]}","disposition":"{sent["disposition"]}",',
        *(
            f'"seq":{d["seq"]},"type":"message.delta"'
            for d in sidecar.events(sent["sessionId"], "message.delta")
        ),
        f'"seq":{ended["seq"]},"type":"turn.ended","data":{{"reason":"{ended["data"]["reason"]}",',
    ]
    shown = block_with(EMBED, "text", "turn.ended")
    assert [text for text in came if text not in shown] == []


@pytest.mark.slow
def test_the_terminal_commands_run_one_after_the_other(folder: Folder) -> None:
    script = block_with(TERMINAL, "sh", "sidecar chats")

    printed = folder.run("sh", "-e", "-c", script)

    assert printed.startswith("Where were we?\nWhat happened on this day?\n")
    assert '"openrpc"' in printed
    assert (folder.path / "thesis.jsonl").exists()


def test_the_provider_commands_are_accepted_by_the_parser(folder: Folder) -> None:
    """They ask providers, download and serve; here each only explains itself."""
    lines = [line.partition("#")[0].split() for line in block_with(PROVIDERS, "sh", "providers").splitlines()]

    printed = [folder.run(*words, "--help") for words in lines]

    assert [text.startswith("usage: sidecar ") for text in printed] == [True] * len(lines)
    assert printed


def test_what_an_app_spawns_exits_at_the_end_of_its_input(folder: Folder) -> None:
    assert folder.run("sh", "-e", "-c", block_with(README, "sh", "sidecar serve")) == ""


def test_the_wheel_to_ship_holds_the_packages_and_their_data(folder: Folder) -> None:
    for name in ("README.md", "LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / name, folder.path)
    for name in ("sidecar", "protocol", "clients"):
        shutil.copytree(ROOT / name, folder.path / name, ignore=shutil.ignore_patterns("__pycache__"))

    folder.run("sh", "-e", "-c", block_with(SHIPPING, "sh", "pip wheel"))

    (wheel,) = (folder.path / "dist").iterdir()
    assert wheel.name.startswith("chat_sidecar-")
    assert _missing(wheel) == []


def _missing(wheel: Path) -> list[str]:
    """Files of the packages that the wheel does not hold."""
    packages = {
        ROOT: "sidecar",
        ROOT / "protocol": "sidecar_protocol",
        ROOT / "clients/python": "sidecar_client",
    }
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    files = [
        str(path.relative_to(base))
        for base, package in packages.items()
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert files
    return [name for name in files if name not in held]
