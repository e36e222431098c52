"""docs/chat-ui.md is a whole chat app: its blocks run under Node against the real sidecar, each recipe in turn.

The scenarios are in `chat_ui.mjs` and use only what the page exports.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from .conftest import Folder
from .pages import blocks, read_page

pytestmark = pytest.mark.slow

PAGE = read_page("docs/chat-ui.md")
SCENARIOS = Path(__file__).with_name("chat_ui.mjs")
NAMES = re.findall(r"^  async (\w+)\(\) \{$", SCENARIOS.read_text("utf-8"), re.MULTILINE)

IMPORTED_TURNS = 3_000
"""Enough for an import that reports its progress."""

SCRIPT = {
    "onExhausted": "echo",
    "replies": [
        {"match": "stream", "steps": [{"thought": "I look"}, {"text": "one two three", "delayMs": 50}]},
        {"match": "fail", "steps": [{"error": {"reason": "quota", "retryable": False}}]},
        {"match": "hang", "steps": [{"text": "One moment"}, {"hang": True}]},
        {
            "match": "edit",
            "steps": [
                {"toolCall": {"name": "read_file", "input": {"path": "plan.md"}}},
                {
                    "toolCall": {
                        "name": "edit_file",
                        "input": {"path": "plan.md", "old_string": "one", "new_string": "two"},
                    }
                },
                {"text": "Done."},
            ],
        },
        {
            "match": "question",
            "steps": [
                {
                    "toolCall": {
                        "name": "ask_user",
                        "input": {"question": "Which colour?", "choices": ["green", "brown"]},
                    }
                },
                {"text": "Thank you."},
            ],
        },
        {
            "match": "picture",
            "steps": [
                {"toolCall": {"name": "screenshot", "input": {"window": "editor"}}},
                {"text": "I see it."},
            ],
        },
    ],
}


@pytest.fixture
def app(folder: Folder) -> Folder:
    """A folder with the app of the page, a project, and a model that plays a script."""
    (folder.path / "chat-app.mjs").write_text("\n".join(blocks(PAGE, "js")), "utf-8")
    shutil.copy(SCENARIOS, folder.path)
    (folder.path / "thesis").mkdir()
    (folder.path / "thesis" / "plan.md").write_text("one\n", "utf-8")
    (folder.path / "thesis" / "notes.md").write_text("Some notes.\n", "utf-8")
    turns = ({"role": role, "text": "Words"} for _ in range(IMPORTED_TURNS) for role in ("user", "assistant"))
    (folder.path / "chat.jsonl").write_text("\n".join(map(json.dumps, turns)), "utf-8")
    (folder.path / "replies.json").write_text(json.dumps(SCRIPT), "utf-8")
    folder.env["SIDECAR_MODEL"] = f"scripted:{folder.path}/replies.json"
    return folder


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("scenario", NAMES)
def test_an_app_built_from_the_page(app: Folder, scenario: str) -> None:
    app.run("node", "chat_ui.mjs", scenario)


def test_the_page_has_ten_recipes_and_a_scenario_for_each() -> None:
    recipes = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)

    assert recipes == [str(number) for number in range(1, 11)]
    assert len(NAMES) >= len(recipes)


def test_each_function_of_the_page_is_used_by_a_scenario() -> None:
    page = "\n".join(blocks(PAGE, "js"))
    exported = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", page, re.MULTILINE)
    used = set(re.findall(r"\bui\.(\w+)", SCENARIOS.read_text("utf-8")))

    assert set(exported) - used == set()
