"""Events as updates: a table of what each becomes, in both versions, live and in a replay."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.frontends.acp.tool_updates import MAX_SHOWN, Stored
from sidecar.frontends.acp.updates import Audience, Updates
from sidecar.frontends.acp.updates_v2 import UpdatesV2
from sidecar.model.events import StoredEvent, encode
from tests.blackbox.editors import schema

Json = dict[str, Any]

USAGE = {"turn": {}, "total": {"cost": 0.25}, "window": {"used": 30, "budget": 90}}
TOOL = {"id": "i", "turnId": "t", "type": "tool", "status": "running", "startedAt": 1, "name": "grep"}
CHANGE = {"path": "a.py", "kind": "modify", "unifiedDiff": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"}
COMPACTION = {"id": "c", "turnId": "t", "type": "compaction", "status": "completed", "startedAt": 1}


class Say:
    """Feeds events to the updates of a chat in /project, and checks what they become by the schema."""

    def __init__(self, version: int = 1, *, shows: bool = True, sent: tuple[str, ...] = ()) -> None:
        self.version = version
        audience = Audience(shows, shows, dict.fromkeys(sent, ""))
        kind = Updates if version == 1 else UpdatesV2
        self.updates = kind(audience, "/project", lambda config: [])
        self._seq = 0

    def __call__(self, type: str, data: Json, stored: Stored | None = None) -> list[Json]:
        self._seq += 1
        event = StoredEvent(self._seq, self._seq, 1_700_000_000_123, "t", type, encode(data))
        return self.checked(self.updates.of(event, data, stored or Stored()))

    def checked(self, updates: list[Json]) -> list[Json]:
        for update in updates:
            params = {"sessionId": "s", "update": update}
            assert schema.problem(self.version, "session/update", "notification", params) is None
        return updates


def item(type: str, status: str = "running", **more: Any) -> Json:
    return {"item": {"id": "i", "turnId": "t", "type": type, "status": status, "startedAt": 1, **more}}


def text(updates: list[Json]) -> list[str]:
    return [update["content"]["text"] for update in updates]


@pytest.mark.parametrize("kind", ["message", "thought"])
def test_a_text_is_said_once_live(kind: str) -> None:
    say = Say()

    said = [
        *say(f"{kind}.started", item(kind)),
        *say(f"{kind}.delta", {"itemId": "i", "text": "Hel"}),
        *say(f"{kind}.delta", {"itemId": "i", "text": "lo"}),
        *say(f"{kind}.completed", item(kind, "completed", text="Hello")),
    ]

    assert text(said) == ["Hel", "lo"]
    role = {"message": "agent_message_chunk", "thought": "agent_thought_chunk"}[kind]
    assert {(update["sessionUpdate"], update["messageId"]) for update in said} == {(role, "i")}


def test_a_text_without_pieces_is_said_at_its_end() -> None:
    say = Say()

    say("message.started", item("message"))

    assert text(say("message.completed", item("message", "completed", text="Hello"))) == ["Hello"]


def test_a_message_that_is_followed_from_its_middle_is_not_said_again() -> None:
    say = Say()

    assert text(say("message.delta", {"itemId": "i", "text": "lo"})) == ["lo"]
    assert say("message.completed", item("message", "completed", text="Hello")) == []


def test_a_replay_says_what_has_ended_whole_and_the_rest_as_far_as_it_is() -> None:
    say = Say()
    say.updates.begin_replay()
    ended = [
        *say("message.started", item("message")),
        *say("message.delta", {"itemId": "i", "text": "One"}),
        *say("message.completed", item("message", "completed", text="One")),
    ]
    open_ = [
        *say("message.started", {"item": {**item("message")["item"], "id": "j"}}),
        *say("message.delta", {"itemId": "j", "text": "Two"}),
    ]

    assert (text(ended), open_) == (["One"], [])
    assert text(say.checked(say.updates.end_replay())) == ["Two"]
    assert text(say("message.delta", {"itemId": "j", "text": " more"})) == [" more"]
    completed = {"item": {**item("message", "completed", text="Two more")["item"], "id": "j"}}
    assert say("message.completed", completed) == []


def test_what_the_client_has_seen_of_a_message_is_not_replayed() -> None:
    say = Say()
    say.updates.begin_replay()
    for type, data in (("started", item("message")), ("delta", {"itemId": "i", "text": "Hel"})):
        say.updates.skip(StoredEvent(1, 1, 0, "t", f"message.{type}", encode(data)), data)
    say("message.delta", {"itemId": "i", "text": "lo"})

    assert text(say("message.completed", item("message", "completed", text="Hello"))) == ["lo"]


@pytest.mark.parametrize(("version", "kinds"), [(1, []), (2, ["user_message"])])
def test_a_prompt_of_the_client_is_echoed_only_in_version_2(version: int, kinds: list[str]) -> None:
    say = Say(version, sent=("p",))
    prompt = {"promptId": "p", "turnId": "t", **item("user", content=[{"type": "text", "text": "Hi"}])}

    assert [update["sessionUpdate"] for update in say("prompt.accepted", prompt)] == kinds
    assert len(say("prompt.accepted", {**prompt, "promptId": "other"})) == 1


def test_the_use_of_the_window_and_its_cost_are_shown() -> None:
    say = Say()
    say("context.assembled", {"window": 200})

    (update,) = say("usage.updated", USAGE)

    assert (update["used"], update["size"]) == (30, 200)
    assert update["cost"] == {"amount": 0.25, "currency": "USD"}
    assert say("usage.updated", {**USAGE, "window": None}) == []


@pytest.mark.parametrize("shows", [True, False])
def test_compactions_are_shown_to_clients_that_can(shows: bool) -> None:
    say = Say(shows=shows)
    begun = {"compactionId": "x", "trigger": "manual", "tokensBefore": 9}

    updates = [
        *say("compaction.started", begun),
        *say("compaction.ended", {**begun, "item": {**COMPACTION, "text": "A summary"}}),
        *say("compaction.started", {**begun, "compactionId": "y"}),
        *say("compaction.ended", {"compactionId": "y", "item": {**COMPACTION, "error": {"message": "No"}}}),
    ]

    about, other = (
        {"sessionUpdate": "compaction_update", "compactionId": "x"},
        {"sessionUpdate": "compaction_update", "compactionId": "y"},
    )
    content = {"type": "text", "text": "A summary"}
    seen = [
        {**about, "status": "in_progress", "summary": []},
        {"sessionUpdate": "compaction_summary_chunk", "compactionId": "x", "content": content},
        {**about, "status": "completed"},
        {**other, "status": "in_progress", "summary": []},
        {**other, "status": "failed", "error": "No"},
    ]
    assert updates == (seen if shows else [])


@pytest.mark.parametrize(
    ("code", "params", "title"),
    [
        ("hook_message", {"message": "Look out"}, "Look out"),
        ("limit_reached", {"limit": "tokens"}, "The turn ended at a limit: tokens"),
        ("media_left_out", {"items": [{"type": "image", "reason": "modality"}]}, "Images or audio were not"),
        ("something_new", {}, "Something new"),
    ],
)
def test_a_notice_is_shown_or_quoted(code: str, params: Json, title: str) -> None:
    data = {"code": code, "params": params}

    (notice,) = Say()("notice", data)
    (quoted,) = Say(shows=False)("notice", data)

    assert notice["title"].startswith(title)
    assert title in quoted["content"]["text"]
    assert Say()("notice", {"code": "hook_context", "params": {}}) == []


def test_a_title_and_a_configuration_are_shown_live_and_not_in_a_replay() -> None:
    say = Say()
    renamed, configured = {"title": "New", "by": "user"}, {"config": {"mode": "auto"}}

    (info,) = say("chat.renamed", renamed)
    kinds = [update["sessionUpdate"] for update in say("config.updated", configured)]
    again = [update["sessionUpdate"] for update in say("config.updated", configured)]

    assert (info["title"], info["updatedAt"]) == ("New", "2023-11-14T22:13:20.123Z")
    assert (kinds, again) == (
        ["config_option_update", "current_mode_update"],
        ["config_option_update"],
    )
    say.updates.begin_replay()
    assert say("chat.renamed", renamed) == say("config.updated", configured) == []


def test_the_output_of_a_command_is_its_end_in_version_1_and_pieces_in_version_2() -> None:
    one, two = Say(1), Say(2)
    piece = {"itemId": "i", "text": "x" * MAX_SHOWN}

    one("tool.output", {"itemId": "i", "text": "first"})
    (long,) = one("tool.output", piece)
    (chunk,) = two("tool.output", {"itemId": "i", "text": "second"})

    shown = long["content"][0]["content"]["text"]
    assert "first" not in shown
    assert len(shown) < MAX_SHOWN + 20
    assert chunk["sessionUpdate"] == "tool_call_content_chunk"
    assert chunk["content"]["content"]["text"] == "```\nsecond\n```"


@pytest.mark.parametrize(
    ("status", "shown"),
    [("completed", ["completed"] * 2), ("failed", ["failed"] * 2), ("denied", ["failed"] * 2),
     ("cancelled", ["failed", "cancelled"]), ("interrupted", ["failed"] * 2)],
)  # fmt: skip
def test_every_status_of_a_call_has_one_of_the_protocol(status: str, shown: list[str]) -> None:
    data = {"item": {**TOOL, "status": status, "output": {"text": "```"}}}

    updates = [Say(version)("tool.ended", data)[0] for version in (1, 2)]

    assert [update["status"] for update in updates] == shown
    assert updates[0]["content"][0]["content"]["text"] == "````\n```\n````"


def test_a_change_is_a_diff_with_both_texts_or_a_patch() -> None:
    change = {**CHANGE, "oldRef": "old", "newRef": "new"}
    data = {"item": {**TOOL, "changes": [change], "input": {"path": "a.py", "start_line": 3}}}
    known = Stored({"old": "x\n", "new": "y\n"})

    (one,), (unknown,) = Say(1)("tool.updated", data, known), Say(1)("tool.updated", data)
    (two,) = Say(2)("tool.updated", data)

    assert one["content"] == [{"type": "diff", "path": "/project/a.py", "oldText": "x\n", "newText": "y\n"}]
    assert "+y" in unknown["content"][0]["content"]["text"]
    assert two["content"][0]["patch"]["text"].startswith("diff --git a/a.py b/a.py\n--- a/a.py")
    assert one["locations"] == [{"path": "/project/a.py", "line": 3}]


def test_an_image_of_a_tool_is_shown_by_its_bytes_or_by_a_line() -> None:
    block = {"type": "image", "blobId": "b", "mimeType": "image/png", "name": "plot.png"}
    data = {"item": {**TOOL, "status": "completed", "output": {"text": "", "content": [block]}}}

    (shown,), (named,) = Say()("tool.ended", data, Stored(media={"b": b"png"})), Say()("tool.ended", data)

    assert shown["content"][0]["content"]["data"] == "cG5n"
    assert named["content"][0]["content"]["text"] == "[image plot.png]"


@pytest.mark.parametrize(
    ("ended", "idle"),
    [
        ({"reason": "end_turn"}, {"stopReason": "end_turn"}),
        ({"reason": "max_steps"}, {"stopReason": "max_turn_requests"}),
        ({"reason": "interrupted"}, {"stopReason": "cancelled"}),
    ],
)
def test_the_states_of_version_2(ended: Json, idle: Json) -> None:
    say = Say(2)

    states = [say("chat.state", {"state": state})[0] for state in ("running", "requires_action", "retrying")]
    assert say("turn.ended", ended) == []
    (last,) = say("chat.state", {"state": "idle"})

    assert [state["state"] for state in states] == ["running", "requires_action", "running"]
    assert last == {"sessionUpdate": "state_update", "state": "idle", **idle}


@pytest.mark.parametrize(
    "type",
    ["files.updated", "patch.recorded", "queue.updated", "hook.ran", "permission.requested", "new.kind"],
)
def test_what_has_no_update_is_left_out(type: str) -> None:
    assert Say(1)(type, {}) == Say(2)(type, {}) == []
