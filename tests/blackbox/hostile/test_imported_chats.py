"""A file that is imported brings what was said and done. Nothing in it runs, allows, or reaches anything."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.blackbox.hostile import chats
from tests.blackbox.mutants.patching import Mutant, environment, source
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

Json = chats.Json

SECRET = "the secret of another folder"


class Scene:
    """A sidecar, a project, a folder beside it, and the file that no import may bring about."""

    def __init__(self, spawn: Spawner, **more: object) -> None:
        self.canary = spawn.folder / "RAN"
        self.project, self.outside = spawn.folder / "project", spawn.folder / "outside"
        for folder in (self.project / ".git" / "hooks", self.outside):
            folder.mkdir(parents=True)
        (self.project / ".env").write_text(SECRET)
        (self.outside / "secret.txt").write_text(SECRET)
        (self.outside / "run").write_text(f"#!/bin/sh\ntouch {self.canary}\n")
        (self.outside / "run").chmod(0o755)
        (self.outside / "script.json").write_text('{"replies": [{"steps": [{"text": "scripted"}]}]}')
        self.sidecar: Sidecar = spawn(**more)  # type: ignore[arg-type]
        self.before = self.files()

    def bring(self, lines: list[Json], **more: object) -> Json:
        foreign = hashlib.sha256(SECRET.encode()).hexdigest()
        text = chats.text_of(
            lines,
            canary=str(self.canary),
            project=str(self.project),
            outside=str(self.outside),
            foreign=foreign,
        )
        return self.sidecar.call("chat/import", chatId="c", projectPath=str(self.project), data=text, **more)

    def use(self) -> Json:
        """Open the chat, ask in it, and take back all that its ledger has."""
        opened = self.sidecar.call("chat/open", chatId="c", projectPath=str(self.project))
        self.sidecar.run("what is there?", chatId="c")
        for path in (self.outside / "new.sh", self.project / "new.txt"):
            self.sidecar.answer(self.sidecar.ask("patches/revert", chatId="c", path=str(path)))
        return opened

    def files(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for folder in (self.project, self.outside)
            for path in folder.rglob("*")
            if path.is_file()
        }


def told(scene: Scene) -> str:
    calls = [
        scene.sidecar.call("chat/history", chatId="c"),
        scene.sidecar.call("chat/export", chatId="c"),
        scene.sidecar.call("files/list", chatId="c"),
        scene.sidecar.frames,
    ]
    return json.dumps(calls)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", chats.HOSTILE)
def test_nothing_of_it_runs_allows_or_reaches_anything(spawn: Spawner, name: str) -> None:
    lines, ignored = chats.HOSTILE[name]
    scene = Scene(spawn)
    fresh = scene.sidecar.call("chat/open", chatId="fresh", projectPath=str(scene.project))["config"]
    assert scene.bring(lines)["ignored"] == ignored
    opened = scene.use()
    assert opened["config"] == fresh
    assert scene.sidecar.call("permissionRules/list", chatId="c")["items"] == []
    assert scene.sidecar.call("tools/list", chatId="c")["servers"] == []
    assert not scene.canary.exists()
    assert scene.files() == scene.before
    assert SECRET not in told(scene)


def test_what_only_shapes_the_chat_is_taken(spawn: Spawner) -> None:
    scene = Scene(spawn)
    taken = {"gates": {"patches": "never"}, "budgets": {"perFile": 900}, "compaction": {"enabled": False}}
    result = scene.bring([chats.header(title="Mine", titleBy="user", config=taken), {"turn": chats.TURN}])
    opened = scene.sidecar.call("chat/open", chatId="c")
    assert (result["ignored"], opened["title"]) == ([], "Mine")
    assert opened["config"]["gates"]["patches"] == "never"
    assert opened["config"]["budgets"]["perFile"] == 900
    assert opened["config"]["compaction"]["enabled"] is False


def test_a_model_of_a_provider_with_a_key_is_taken(spawn: Spawner) -> None:
    scene = Scene(spawn, env={"ANTHROPIC_API_KEY": "sk-ant-not-a-real-key"})
    assert scene.bring(chats.config(model="anthropic:claude-x"))["ignored"] == []
    assert scene.sidecar.call("chat/open", chatId="c")["config"]["model"] == "anthropic:claude-x"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("title", ["a\x1b[2Jb", "a\r\nb", "a\u202eb", "a\x00b", "a\x9bb"])
def test_a_title_draws_nothing_but_its_words(spawn: Spawner, title: str) -> None:
    scene = Scene(spawn)
    scene.bring([chats.header(title=title), {"turn": chats.TURN}])
    shown = scene.sidecar.call("chat/open", chatId="c")["title"]
    assert shown.isprintable()
    assert shown[0] + shown[-1] == "ab"


def test_a_chat_with_a_configuration_keeps_it(spawn: Spawner) -> None:
    scene = Scene(spawn)
    scene.sidecar.call("chat/open", chatId="c", config={"mode": "read-only"})
    assert scene.bring(chats.config(mode="auto"))["ignored"] == ["mode"]
    assert scene.sidecar.call("chat/open", chatId="c")["config"]["mode"] == "read-only"


def test_bytes_of_another_chat_are_not_brought_in_by_their_name(spawn: Spawner) -> None:
    scene = Scene(spawn)
    ref = scene.sidecar.call(
        "blob/put", data="dGhlIHNlY3JldCBvZiBhbm90aGVyIGZvbGRlcg==", mimeType="text/plain"
    )
    content = [{"type": "resource", "blobId": ref["blobId"], "mimeType": "text/plain", "name": "x"}]
    item = {**chats.TURN["items"][0], "content": content}
    output = {
        **chats.TURN["items"][1],
        "id": "i3",
        "type": "tool",
        "output": {"ref": ref["blobId"], "text": "x"},
    }
    scene.bring([chats.header(), {"turn": {**chats.TURN, "items": [item, output]}}])
    assert ref["blobId"] not in json.dumps(scene.sidecar.call("chat/history", chatId="c"))


def test_a_call_that_seems_to_run_has_ended(spawn: Spawner) -> None:
    scene = Scene(spawn)
    item = {
        **chats.TURN["items"][1],
        "id": "../../x",
        "type": "tool",
        "name": "run_command",
        "status": "running",
    }
    scene.bring([chats.header(), {"turn": {**chats.TURN, "items": [chats.TURN["items"][0], item]}}])
    (turn,) = scene.sidecar.call("chat/history", chatId="c")["turns"]
    assert [one["status"] for one in turn["items"]] == ["completed", "interrupted"]


TWIN = Mutant(
    "imports a configuration as it was",
    "sidecar/chat/actions/import_filter.py",
    "    imported.config = kept\n",
    "    imported.config = imported.config\n",
    "tests/blackbox/hostile/test_imported_chats.py",
)


@pytest.mark.slow
def test_a_twin_that_takes_the_configuration_is_caught(spawn: Spawner, tmp_path: Path) -> None:
    scene = Scene(spawn, env=environment(source(tmp_path, TWIN, whole=False)))
    lines, _ = chats.HOSTILE["a program, root and auto"]
    scene.bring(lines)
    assert scene.use()["config"]["mode"] == "auto"
