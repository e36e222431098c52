"""What is loaded ahead of a first prompt, and when. Each runs in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

REQUEST = ("sidecar.chat.request.build", "sidecar.chat.request.next_step")
PROJECT = ("sidecar.tools.builtin", "sidecar.chat.request.project", "sidecar.chat.request.instructions")
GATES = ("sidecar.context.gates.prompt_reading",)

PROGRAM = """
import sys
import anyio
from sidecar.chat.sessions import preload
anyio.run(preload.preload_modules, lambda: None, {answered!r}, {in_project!r}, {has_past!r})
print(*(name for name in {names!r} if name in sys.modules))
rules = sys.modules.get("sidecar.context.phrases.rules")
print(rules._book.cache_info().currsize if rules else 0)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("answered", "in_project", "has_past", "modules", "languages"),
    [
        ([], False, False, REQUEST, 0),
        ([], False, True, (*REQUEST, *GATES), 6),
        ([], True, False, (*REQUEST, *PROJECT, *GATES), 6),
        (["t1"], True, True, (), 0),
    ],
    ids=["a new chat", "an old chat", "in a project", "while a model answers"],
)
def test_what_a_first_prompt_needs_is_loaded_ahead_of_it(
    answered: list[str], in_project: bool, has_past: bool, modules: tuple[str, ...], languages: int
) -> None:
    names = (*REQUEST, *PROJECT, *GATES)
    program = PROGRAM.format(answered=answered, in_project=in_project, has_past=has_past, names=names)
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split() == [*modules, str(languages)]
