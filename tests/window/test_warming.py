"""What is loaded ahead of a first prompt, and when. Each runs in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sidecar.chat.warming import ASKING, GATES, PROJECT

PROGRAM = """
import sys
import anyio
from sidecar.chat import warming
anyio.run(warming.load, {answered!r}, {in_project!r}, {has_past!r})
print(*(name for name in (*warming.ASKING, *warming.PROJECT, *warming.GATES) if name in sys.modules))
phrases = sys.modules.get("sidecar.context.gates.phrases")
print(phrases._book.cache_info().currsize if phrases else 0)
"""


@pytest.mark.parametrize(
    ("answered", "in_project", "has_past", "modules", "languages"),
    [
        ([], False, False, ASKING, 0),
        ([], False, True, (*ASKING, *GATES), 6),
        ([], True, False, (*ASKING, *PROJECT, *GATES), 6),
        (["t1"], True, True, (), 0),
    ],
    ids=["a new chat", "an old chat", "in a project", "while a model answers"],
)
def test_what_a_first_prompt_needs_is_loaded_ahead_of_it(
    answered: list[str], in_project: bool, has_past: bool, modules: tuple[str, ...], languages: int
) -> None:
    program = PROGRAM.format(answered=answered, in_project=in_project, has_past=has_past)
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split() == [*modules, str(languages)]
