"""The sessions that the real agents write are imported with all that their models were sent, and go on here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

from .agents import MODULES
from .sent import Line, call, lines
from .sessions import PLACES, SESSIONS, STEP_S

pytestmark = pytest.mark.skipif(
    os.environ.get("SIDECAR_PLATFORMS") != "1", reason="the real agents: make test-platforms"
)

OURS = ("Please work on it", "And a", "After it", "Long one", "Forked", "Look [[", "A third")
"""How prompts begin that a user has given; agents send more in the user's name."""

ANSWERS = ("All done here", "Second answer", "Third answer", "After compaction", "Fork answer", "Seen")

MODELS = ("anthropic:fake-1", "openai:fake-1", "openai-responses:fake-1", "gemini:fake-1", "ollama:fake-1")

RENAMED = re.compile("^Agent ")
"""Claude Code sends a call of its tool Task under another name than that of the reply."""

NO_CALLS = ("gemini-cli",)
"""Agents that store a call only when it has ended."""

NO_IMAGES = ("qwen-code",)
"""Agents that send no image to a model that they do not know."""

KEPT_SPACES = str.maketrans("", "", " \n\t\r")


@pytest.fixture(scope="module", params=SESSIONS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """An agent, and the folder that its session was written in."""
    name: str = request.param
    given = os.environ.get("SIDECAR_SESSIONS_DIR")
    if given:
        return name, Path(given) / name
    assert MODULES.is_dir(), f"{MODULES}: the agents are not installed"
    folder = tmp_path_factory.mktemp("sessions") / name
    command = ["unshare", "-n", sys.executable, "-m", "tests.platforms.sessions", name, str(folder)]
    subprocess.run(command, timeout=6 * STEP_S, check=True)
    return name, folder


@pytest.fixture
def imported(recorded: tuple[str, Path], spawn: Spawner) -> tuple[Sidecar, list[Json]]:
    """A sidecar with the agent's chats."""
    name, folder = recorded
    sidecar = spawn()
    done = sidecar.call("history/import", platform=name, path=str(folder / PLACES[name]))
    assert done["problems"] == []
    return sidecar, done["chats"]


def items_of(sidecar: Sidecar, chat_id: str) -> list[Json]:
    turns = sidecar.call("chat/history", chatId=chat_id, limit=500)["turns"]
    return [item for turn in turns for item in turn["items"]]


def shown(item: Json) -> Iterator[Line]:
    """An item as the model was sent it."""
    if item["type"] in ("user", "message"):
        yield ("user" if item["type"] == "user" else "assistant"), item["text"]
    elif item["type"] == "tool":
        yield call(item["name"], item["input"])
        if "output" in item:
            yield "result", item["output"]["text"]


def test_the_chat_has_all_that_the_model_was_sent(
    recorded: tuple[str, Path], imported: tuple[Sidecar, list[Json]]
) -> None:
    sidecar, chats = imported
    requests = json.loads((recorded[1] / "requests.json").read_text())
    sent = {line for request in requests if request["status"] == 200 for line in lines(request)}
    here = [line for chat in chats for item in items_of(sidecar, chat["chatId"]) for line in shown(item)]
    texts = {
        kind: {packed(text) for of, text in here if of == kind} for kind in ("user", "assistant", "result")
    }

    calls = {RENAMED.sub("Task ", text) for kind, text in sent if kind == "call"}
    results = {packed(text) for kind, text in sent if kind == "result"}
    prompts = {packed(prompt) for kind, text in sent if kind == "user" for prompt in ours(text)}
    said = {packed(text) for kind, text in sent if kind == "assistant" and text in ANSWERS}
    assert calls - {text for kind, text in here if kind == "call"} == set()
    assert {one for one in results if not found(one, texts["result"])} == set()
    assert prompts - texts["user"] == set()
    assert said - texts["assistant"] == set()
    assert len(calls) >= 4
    assert len(prompts) >= 2


def test_what_the_model_was_sent_is_in_one_chat_in_the_same_order(
    recorded: tuple[str, Path], imported: tuple[Sidecar, list[Json]]
) -> None:
    sidecar, chats = imported
    requests = json.loads((recorded[1] / "requests.json").read_text())
    told = [
        [
            event
            for item in items_of(sidecar, chat["chatId"])
            for line in shown(item)
            for event in of_work(line)
        ]
        for chat in chats
    ]

    for request in requests:
        sent = [event for line in lines(request) for event in of_work(line)]
        if request["status"] == 200:
            assert any(is_told(sent, chat) for chat in told), sent


def of_work(line: Line) -> Iterator[Line]:
    """The events that a request and a chat share; agents send more in the user's name."""
    kind, text = line
    if kind == "user":
        yield from (("user", packed(prompt)) for prompt in ours(text))
    elif kind == "call":
        yield "call", RENAMED.sub("Task ", text)
    elif kind == "result" and packed(text):
        yield "result", packed(text)
    elif kind == "assistant" and text in ANSWERS:
        yield "assistant", packed(text)


def is_told(sent: list[Line], chat: list[Line]) -> bool:
    """Whether the events are in the chat, in their order."""
    rest = iter(chat)
    return all(any(kind == of and is_same(kind, text, one) for of, one in rest) for kind, text in sent)


def is_same(kind: str, text: str, one: str) -> bool:
    return text == one or (kind == "result" and found(text, {one}))


def ours(text: str) -> list[str]:
    """The user's own words in a message of the user; agents put some before them, and quote them in summaries."""
    starts = [text.index(start) for start in OURS if start in text]
    said = text[min(starts) :].strip() if starts else ""
    return [said] if said.endswith("]]") and "<" not in said.split("[[")[0] else []


def packed(text: str) -> str:
    return text.translate(KEPT_SPACES)


def found(result: str, here: set[str]) -> bool:
    """Whether a result is here: agents send images, and some results, with words around them."""
    return not result or result in here or any(one and (one in result or result in one) for one in here)


def test_edits_are_in_the_ledger_and_an_unfinished_call_is_interrupted(
    recorded: tuple[str, Path], imported: tuple[Sidecar, list[Json]]
) -> None:
    name, (sidecar, chats) = recorded[0], imported
    items = [item for chat in chats for item in items_of(sidecar, chat["chatId"])]
    patches = [
        patch for chat in chats for patch in sidecar.call("patches/list", chatId=chat["chatId"])["items"]
    ]

    assert {patch["filePath"] for patch in patches} == {"a.txt"}
    assert any(
        "-two\n+2" in (change.get("unifiedDiff") or "")
        for item in items
        for change in item.get("changes") or []
    )
    killed = {item["status"] for item in items if "time.sleep(300)" in json.dumps(item.get("input"))}
    assert ("interrupted" in killed) is (name not in NO_CALLS)
    blocks = [
        block
        for item in items
        for block in [*(item.get("content") or []), *((item.get("output") or {}).get("content") or [])]
    ]
    assert any(block["type"] == "image" for block in blocks) is (name not in NO_IMAGES)


@pytest.mark.parametrize("model", MODELS)
def test_each_chat_goes_on_here(recorded: tuple[str, Path], spawn: Spawner, model: str) -> None:
    name, folder = recorded
    command = [sys.executable, "-m", "sidecar", "fake-provider", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as provider:
        try:
            assert provider.stdout is not None
            _, *pairs = provider.stdout.readline().split()
            sidecar = spawn(model=model, env=dict(pair.split("=", 1) for pair in pairs))
            done = sidecar.call("history/import", platform=name, path=str(folder / PLACES[name]))
            for number, chat in enumerate(done["chats"]):
                sent = sidecar.call(
                    "prompt/send",
                    chatId=chat["chatId"],
                    promptId=f"p-{number}",
                    text="And now? [[say=On it]]",
                )
                sidecar.wait_turn(sent["sessionId"], sent["turnId"])
                last = sidecar.call("chat/history", chatId=chat["chatId"], limit=1)["turns"][-1]
                assert (last["reason"], last["items"][-1]["text"]) == ("end_turn", "On it"), last
        finally:
            provider.terminate()


@pytest.mark.parametrize("target", ["claude-code", "codex"])
def test_an_exported_chat_is_resumed_by_the_real_program(tmp_path: Path, target: str) -> None:
    assert MODULES.is_dir(), f"{MODULES}: the agents are not installed"
    command = ["unshare", "-n", sys.executable, "-m", "tests.platforms.resume", target, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * STEP_S, check=False)

    assert done.returncode == 0, done.stderr
    sent = [tuple(line) for line in json.loads(done.stdout)]
    assert ("user", "The word is heron") in sent
    assert ("assistant", "Noted: heron.") in sent
    assert ("result", "hello") in sent
    assert ("user", "Go on [[say=Going on]]") in sent
