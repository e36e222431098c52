"""A file that is imported into a project with links: its open files and patches are judged by where links lead."""

from __future__ import annotations

import json
import os

import pytest

from tests.blackbox.hostile import chats
from tests.blackbox.hostile.test_imported_chats import SECRET, Scene
from tests.support.spawner import Spawner

LINKS = {"hk": ".git/hooks", "notes.txt": ".env", "up": "../outside", "deep": "hk", "ide": ".vscode"}


def linked(spawn: Spawner) -> Scene:
    scene = Scene(spawn)
    (scene.project / ".vscode").mkdir()
    (scene.project / "editor").mkdir()
    for link, target in LINKS.items():
        (scene.project / link).symlink_to(target)
    (scene.project / ".idea").symlink_to("editor")
    os.link(scene.project / ".env", scene.project / "twin.txt")
    scene.before = scene.files()
    return scene


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "path",
    [
        "hk/pre-commit",
        "deep/pre-commit",
        "up/new.sh",
        "ide/tasks.json",
        "editor/x.xml",
        "src/../hk/a",
        ".GIT/hooks/a",
    ],
)
def test_no_patch_is_taken_that_leads_to_a_protected_file(spawn: Spawner, path: str) -> None:
    scene = linked(spawn)
    assert scene.bring(chats.with_patch(f"{{project}}/{path}", mode=0o755))["ignored"] == ["patches"]
    scene.sidecar.call("chat/open", chatId="c", projectPath=str(scene.project))
    scene.sidecar.answer(scene.sidecar.ask("patches/revert", chatId="c", path=str(scene.project / path)))
    assert scene.files() == scene.before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", ["notes.txt", "twin.txt", "./notes.txt", "hk/../notes.txt"])
def test_no_open_file_leads_to_a_secret(spawn: Spawner, path: str) -> None:
    scene = linked(spawn)
    lines = chats.open_file(f"{{project}}/{path}")
    assert scene.bring(lines)["ignored"] == ["openFiles"]
    preview = scene.sidecar.call(
        "chat/context", chatId="c", text="Explain notes.txt and twin.txt", includeText=True
    )
    assert SECRET not in json.dumps(preview)


def test_an_open_file_of_an_import_was_not_chosen_by_the_user(spawn: Spawner) -> None:
    scene = linked(spawn)
    (scene.project / "asked.txt").write_text(SECRET)
    scene.sidecar.call("chat/open", chatId="c", projectPath=str(scene.project))
    scene.sidecar.call("permissionRules/set", chatId="c", scope="user", effect="ask", rule="read(asked.txt)")
    scene.bring(chats.open_file("{project}/asked.txt"))
    preview = scene.sidecar.call("chat/context", chatId="c", text="Explain asked.txt", includeText=True)
    assert SECRET not in json.dumps(preview)


def test_what_is_harmless_is_taken(spawn: Spawner) -> None:
    scene = linked(spawn)
    assert scene.bring(chats.with_patch("{project}/src/a.txt"))["ignored"] == []
