"""Makes turns of the events that the hooks of coding agents have written: prompts, tool calls and answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model import JsonObject
from ...model.content import Block, Item, Turn

MAX_LINE = 160
"""Characters of a label."""

REPEATED_MS = 3_000
"""An agent that reads two files with our hook runs it twice, in the same moment."""

EDIT_TOOLS = frozenset(
    {
        *(
            "Edit",
            "MultiEdit",
            "Write",
            "NotebookEdit",
            "edit",
            "write",
            "write_file",
            "replace",
            "edit_file",
        ),
        *(
            "create",
            "str_replace",
            "str_replace_editor",
            "fs_write",
            "StrReplace",
            "WriteFile",
            "StrReplaceFile",
        ),
    }
)
READ_TOOLS = frozenset({"Read", "read", "read_file", "view", "ReadFile", "fs_read"})
PLAN_TOOLS = frozenset({"TodoWrite", "todo_write", "todowrite", "update_plan", "write_todos", "SetTodoList"})


class AgentEvent(msgspec.Struct, frozen=True):
    """One event as a hook has written it; `name` is that of its file, and `id` the agent's name for the call."""

    platform: str
    session: str
    project: str
    kind: str
    ts: int
    text: str
    tool: str = ""
    input: JsonObject = {}
    id: str = ""
    name: str = ""


def without_repeats(events: Sequence[AgentEvent]) -> tuple[list[AgentEvent], list[AgentEvent]]:
    """The events, and those that a second hook has written again."""
    kept: list[AgentEvent] = []
    repeated: list[AgentEvent] = []
    seen: dict[bytes, int] = {}
    for event in events:
        same = msgspec.structs.replace(event, ts=0, name="")
        key = msgspec.json.encode(same)
        if event.ts - seen.get(key, -REPEATED_MS) < REPEATED_MS:
            repeated.append(event)
        else:
            kept.append(event)
            seen[key] = event.ts
    return kept, repeated


def turns_of(events: Sequence[AgentEvent]) -> list[tuple[Turn, list[str]]]:
    """The events as turns, with the names of the files that each is made of. A prompt begins a turn."""
    turns: list[tuple[Turn, list[str]]] = []
    for event in events:
        if event.kind == "prompt" or not turns:
            turns.append((_new_turn(event), []))
        turn, names = turns[-1]
        names.append(event.name)
        turn.items.extend(_items(event, turn.id, len(turn.items)))
    return [
        (msgspec.structs.replace(turn, ended_at=turn.items[-1].ended_at), names)
        for turn, names in turns
        if turn.items
    ]


def label_of(event: AgentEvent) -> str:
    """The tool and what it was used for, on one line."""
    shown = str(event.input.get("command") or _path(event) or event.input.get("url") or "")
    return f"{event.tool} {shown}".replace("\n", " ").strip()[:MAX_LINE]


def _new_turn(event: AgentEvent) -> Turn:
    key = event.name.removesuffix(".json")
    return Turn(
        id=f"t-{key}",
        prompt_id=f"p-{key}",
        items=[],
        status="completed",
        model="",
        engine=event.platform,
        started_at=event.ts,
        ended_at=event.ts,
        reason="end_turn",
    )


def _items(event: AgentEvent, turn_id: str, place: int) -> list[Item]:
    item = Item(
        id=f"i-{place}-{turn_id}",
        turn_id=turn_id,
        type="message",
        status="completed",
        started_at=event.ts,
        ended_at=event.ts,
    )
    replace = msgspec.structs.replace
    if event.kind == "prompt":
        return [replace(item, type="user", text=event.text, content=[Block(type="text", text=event.text)])]
    if event.kind == "answer":
        return [replace(item, text=event.text)]
    if event.kind != "after_tool":
        return []
    path = _path(event)
    call = replace(
        item,
        type="tool",
        name=event.tool[:64],
        kind="edit" if event.tool in EDIT_TOOLS else "read" if event.tool in READ_TOOLS else "other",
        title=label_of(event),
        input=event.input,
        output={"text": event.text, "truncated": False},
        changes=[{"path": path, "kind": "edit"}] if path and event.tool in EDIT_TOOLS else None,
        locations=[{"path": path}] if path and event.tool in READ_TOOLS else None,
    )
    steps = _plan(event)
    return [call, replace(item, id=f"{item.id}-plan", type="plan", entries=steps)] if steps else [call]


def _path(event: AgentEvent) -> str:
    names = ("file_path", "path", "absolute_path", "filePath", "notebook_path")
    found = next((event.input[name] for name in names if isinstance(event.input.get(name), str)), "")
    return str(found).removeprefix(f"{event.project}/")


def _plan(event: AgentEvent) -> list[JsonObject]:
    """The steps of a plan that the agent's own tool has written."""
    listed = event.input.get("todos") or event.input.get("plan")
    if event.tool not in PLAN_TOOLS or not isinstance(listed, list):
        return []
    steps = []
    for entry in listed:
        text = (
            next(
                (
                    entry[name]
                    for name in ("content", "step", "description", "title")
                    if isinstance(entry.get(name), str)
                ),
                None,
            )
            if isinstance(entry, dict)
            else None
        )
        if text:
            steps.append({"content": text, "status": str(entry.get("status") or "pending")})
    return steps
