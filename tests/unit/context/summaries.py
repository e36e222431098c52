"""Turns and summaries for the tests of `context/summary`, and a counter of tokens."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from sidecar.context.summary import (
    Fact,
    KnownError,
    Summary,
    TouchedFile,
    UserQuote,
    extract,
)
from sidecar.model.content import Block, Item, Turn

ROOM = 1500
NUMBERS = itertools.count()
unhurried = settings(deadline=None)


def count(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // 3)


def item(type: str, **members: Any) -> Item:
    members.setdefault("status", "completed")
    return Item(id=f"i{next(NUMBERS)}", turn_id="", type=type, started_at=0, **members)


def user(text: str) -> Item:
    return item("user", content=[Block(type="text", text=text)])


def model(text: str) -> Item:
    return item("message", text=text)


def run(command: str, code: int, output: str = "") -> Item:
    status = "failed" if code else "completed"
    given = {"command": command}
    return item(
        "tool",
        name="run_command",
        kind="execute",
        input=given,
        status=status,
        exit_code=code,
        output={"text": output},
    )


def edit(path: str, kind: str = "modify") -> Item:
    return item(
        "tool", name="edit_file", kind="edit", input={"path": path}, changes=[{"path": path, "kind": kind}]
    )


def plan(*steps: tuple[str, str]) -> Item:
    return item("plan", entries=[{"content": content, "status": status} for content, status in steps])


def turn(id: str, *items: Item, hidden: bool = False) -> Turn:
    return Turn(
        id=id,
        prompt_id=f"p-{id}",
        items=list(items),
        status="completed",
        model="m",
        engine="native",
        started_at=0,
        hidden=hidden,
    )


def chat(*said: str) -> list[Turn]:
    return [turn(f"t{number}", user(text)) for number, text in enumerate(said, 1)]


def made(*turns: Turn, previous: Summary | None = None, room: int = ROOM) -> Summary:
    return extract(previous, turns, count, room)


TEXT = st.text(st.characters(), max_size=40)
LINES = st.lists(TEXT, max_size=6)
SUMMARIES = st.builds(
    Summary,
    goal=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    constraints=LINES,
    decisions=LINES,
    tasks=LINES,
    files=st.lists(st.builds(TouchedFile, path=TEXT, why=TEXT), max_size=4),
    errors=st.lists(st.builds(KnownError, error=TEXT, resolution=st.none() | TEXT), max_size=4),
    facts=st.lists(st.builds(Fact, text=TEXT, turn_id=TEXT), max_size=6),
    said=st.lists(st.builds(UserQuote, turn_id=TEXT, text=TEXT), max_size=6),
    up_to=TEXT,
)

FULL = Summary(
    goal="Port the shop",
    constraints=["Never touch the tests"],
    decisions=["We decided on SQLite"],
    tasks=["Write the importer"],
    files=[
        TouchedFile(path="shop.py", why="changed: port it"),
        TouchedFile(path="old.py", why="read: port it"),
    ],
    errors=[
        KnownError(error="`make`: exit code 2: no rule"),
        KnownError(error="`pytest`: 1 failed", resolution="worked in a later run"),
    ],
    facts=[Fact(text="The port is 8080", turn_id="t1"), Fact(text="The port is 9090", turn_id="t2")],
    said=[UserQuote(turn_id="t1", text="first\nwith a line"), UserQuote(turn_id="t2", text="second")],
    up_to="t2",
)
