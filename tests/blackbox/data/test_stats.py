"""`stats/read`: measured by what the journal says, counted once, and null where nobody measured."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from tests.blackbox.models.talk import Talk
from tests.blackbox.work.workbench import Workbench, call
from tests.support.scripts import write_script
from tests.support.sidecar import EventTest, Sidecar
from tests.support.spawner import Spawner

from .database_files import folder

PRICES = '[providers.openai.models]\n"fake" = {window = 8000, prices = {input = 2.0, output = 10.0, cached = 0.5}}\n'


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with in_thread() as made:
        yield made


def told(sidecar: Sidecar, *chats: str) -> Counter[str]:
    """What the ends of turns in these chats' journals say."""
    sums: Counter[str] = Counter()
    for chat in chats:
        session = sidecar.call("chat/open", chatId=chat)["sessionId"]
        for event in sidecar.journal(session):
            if event["type"] == "turn.ended":
                sums.update(event["data"]["usage"])
    return sums


def tokens(figures: dict[str, Any]) -> dict[str, int]:
    return {name: figures[name] for name in ("inputTokens", "outputTokens", "cachedTokens")}


def test_a_killed_process_counts_nothing_twice(spawn: Spawner) -> None:
    script = {"usage": {"input": 100, "output": 7, "cached": 40}}
    for number in range(3):
        sidecar = spawn(model=_script(spawn, script))
        sidecar.run("quick", chatId=f"c{number}")
        turn = sidecar.say("slow", chatId=f"c{number}")
        sidecar.wait_event(turn["sessionId"], _usage_of(turn["turnId"]))
        sidecar.kill()
    last = spawn()
    chats = [f"c{number}" for number in range(3)]
    sums = told(last, *chats)
    figures = last.call("stats/read")
    assert sums == {"inputTokens": 600, "outputTokens": 42, "cachedTokens": 240}
    assert tokens(figures) == dict(sums)
    assert (figures["turns"], figures["countedTurns"]) == (6, 6)


def _usage_of(turn: str) -> EventTest:
    return lambda event: event["type"] == "usage.updated" and event["turnId"] == turn


def _script(spawn: Spawner, usage: dict[str, Any]) -> str:
    path = spawn.folder / "usage.json"
    slow = [usage, {"toolCall": {"name": "none", "input": {}}}, {"hang": True}]
    replies = [{"regex": "^slow$", "steps": slow}, {"regex": "", "steps": [{"text": "So."}, usage]}]
    path.write_text(json.dumps({"replies": replies}))
    return f"scripted:{path}"


def test_a_fork_and_an_import_are_not_measured_again(sidecar: Sidecar) -> None:
    sidecar.run("one two three", chatId="a")
    before = tokens(sidecar.call("stats/read"))
    sidecar.call("chat/fork", chatId="a", newChatId="b")
    exported = sidecar.call("chat/export", chatId="a")["data"]
    sidecar.call("chat/import", chatId="c", data=exported)
    after = sidecar.call("stats/read")
    assert (after["chats"], after["turns"], tokens(after)) == (3, 3, before)
    sidecar.run("four", chatId="b")
    assert sidecar.call("stats/read", scope="chat", chatId="b")["inputTokens"] == 1


def test_a_purged_chat_stays_in_its_projects_totals(spawn: Spawner) -> None:
    sidecar, project = spawn(), str(folder(spawn, "project"))
    for chat in ("a", "b"):
        sidecar.run("one two three", chatId=chat, projectPath=project)
    wanted = {"scope": "project", "projectPath": project}
    before = sidecar.call("stats/read", **wanted)
    sidecar.call("data/purge", chatId="a", confirm=True)
    after = sidecar.call("stats/read", **wanted)
    assert tokens(after) == tokens(before) == {"inputTokens": 6, "outputTokens": 6, "cachedTokens": 0}
    assert (after["chats"], after["turns"], after["purgedChats"], after["purgedTurns"]) == (1, 1, 1, 1)
    (listed,) = after["projects"]
    assert (listed["chats"], listed["inputTokens"]) == (1, 6)
    sidecar.call("chat/delete", chatId="b")
    gone = sidecar.call("stats/read", **wanted)
    assert (gone["chats"], gone["purgedChats"], tokens(gone)) == (0, 2, tokens(before))


def test_the_cost_is_the_tokens_by_list_prices(fake: FakeProvider, spawn: Spawner) -> None:
    talk = Talk("openai-chat", fake, spawn, spawn.folder, PRICES)
    usage = talk.ask("hello")["usage"]
    plain = usage["inputTokens"] - usage.get("cachedTokens", 0)
    cost = (plain * 2 + usage.get("cachedTokens", 0) * 0.5 + usage["outputTokens"] * 10) / 1e6
    assert usage["cost"] == pytest.approx(cost)
    figures = talk.sidecar.call("stats/read")
    assert (figures["cost"], figures["pricedTurns"]) == (pytest.approx(cost), 1)
    assert figures["days"][-1]["cost"] == pytest.approx(cost)


def test_the_cost_is_null_where_no_price_is_known(fake: FakeProvider, spawn: Spawner) -> None:
    talk = Talk("openai-chat", fake, spawn, spawn.folder)
    talk.ask("hello")
    figures = talk.sidecar.call("stats/read")
    assert (figures["cost"], figures["pricedTurns"], figures["countedTurns"]) == (None, 0, 1)


def test_what_was_not_measured_is_null(sidecar: Sidecar) -> None:
    sidecar.run("hello", chatId="c")
    figures = sidecar.call("stats/read")
    names = ("captured", "sent", "returned", "keptOut", "cost", "fetches", "fetchHits")
    assert {name: figures[name] for name in names} == dict.fromkeys(names)
    assert (figures["searches"], figures["compactions"], figures["index"]["sources"]) == (0, 0, 0)


def test_calls_are_counted_by_tool(bench: Workbench) -> None:
    sidecar = bench.start([[call("read_file", path="notes.txt")], [call("list_dir", path=".")] * 2, "done"])
    sidecar.run("look", chatId="c")
    figures = sidecar.call("stats/read", scope="chat", chatId="c")
    assert {tool["name"]: tool["calls"] for tool in figures["tools"]} == {"read_file": 1, "list_dir": 2}


def test_the_newest_project_comes_first_with_its_last_activity(spawn: Spawner) -> None:
    sidecar, paths = spawn(), [str(folder(spawn, name).resolve()) for name in ("old", "new")]
    for number, path in enumerate(paths):
        sidecar.run("hello", chatId=f"c{number}", projectPath=path)
    projects = sidecar.call("stats/read")["projects"]
    assert [project["path"] for project in projects] == paths[::-1]
    assert projects[0]["lastActivity"] >= projects[1]["lastActivity"] > 0
    assert [project["events"] > 0 for project in projects] == [True, True]


def test_figures_of_a_turn_that_runs_come_with_its_end(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    assert sidecar.call("stats/read")["countedTurns"] == 0
    sidecar.call("turn/cancel", chatId="c")
    assert sidecar.call("stats/read")["turns"] == 1


def test_what_tools_kept_out_is_the_sum_of_their_ends(bench: Workbench) -> None:
    noise = "".join(f"{n:05} nothing of note happened here\n" for n in range(3000))
    (bench.project / "build.log").write_text(noise + "the shuttle broke at pick 4711\n" + noise)
    look = [call("run_command", command="cat build.log")]
    seek = [call("search_context", queries=["shuttle broke", "pick"])]
    steps = [look, look, seek, [call("read_file", path="notes.txt")], "It broke at pick 4711."]
    sidecar = bench.start(steps)  # the first look is shown a better way, the second one insists
    session = sidecar.run("why did it stop?", chatId="c")["sessionId"]
    ends = [event["data"] for event in sidecar.journal(session) if event["type"] == "tool.ended"]
    sums: Counter[str] = Counter()
    for end in ends:
        sums.update(end.get("measured", {}))
    figures = sidecar.call("stats/read", scope="chat", chatId="c")
    names = ("captured", "sent", "returned", "searches")
    assert {name: figures[name] for name in names} == {name: sums[name] for name in names}
    assert (sums["captured"] > 50 * sums["sent"] > 0, sums["returned"] > 0, sums["searches"]) == (
        True,
        True,
        2,
    )
    assert figures["keptOut"] == sums["captured"] - sums["sent"] - sums["returned"]
    tools = {tool["name"]: (tool["captured"], tool["returned"]) for tool in figures["tools"]}
    assert tools["run_command"] == (sums["captured"], None)
    assert tools["search_context"] == (None, sums["returned"])
    assert tools["read_file"] == (None, None)
    assert figures["index"]["sources"] >= 1
