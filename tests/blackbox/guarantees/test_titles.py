"""A chat gets a title by itself: its first words, or the model's when the user wants that."""

from __future__ import annotations

import json

from tests.support.spawner import Spawner


def test_the_first_words_are_the_title(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.run("How do punch cards work", chatId="c")
    assert sidecar.call("chat/open", chatId="c")["title"] == "How do punch cards work"


def test_the_model_names_the_chat_after_its_first_turn(spawn: Spawner) -> None:
    script = spawn.folder / "titles.json"
    title = {"match": "Give the chat", "steps": [{"text": "Punch cards explained"}]}
    script.write_text(json.dumps([title, {"steps": [{"text": "With holes."}]}]))
    (spawn.folder / "config.toml").write_text('titles = "model"\n')
    sidecar = spawn("--config", str(spawn.folder / "config.toml"), model=f"scripted:{script}")
    session = sidecar.call("chat/open", chatId="c")["sessionId"]
    sidecar.run("How do punch cards work", chatId="c")
    renamed = sidecar.wait_event(
        session,
        lambda event: event["type"] == "chat.renamed" and event["data"]["title"].endswith("explained"),
    )
    assert renamed["data"] == {"title": "Punch cards explained", "by": "sidecar"}
