"""`python -m benchmarks.session`: a long session of an agent, replayed with and without the index; tokens side by side.

The agent works on a copy of this repository, by commands whose outputs are real: test runs, greps, logs, listings,
files. Where an output is kept out of the window, it then looks up what it needs (`search_context`), as a model that
sees all of the output need not; what comes back counts against the index, and whether the answer is in it is reported.
Both replays talk to the imitation of a provider's API, which has all requests afterwards; nothing is estimated.
The window is large enough for either, nothing is compacted, and no open files are sent along.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from sidecar.context.tokens import counting
from sidecar.context.tokens.families import family_of
from sidecar.fake_provider import Recorded, in_thread

from .pipe import Pipe

Json = dict[str, Any]

MODEL = "openai:fake-modern"
FAMILY = family_of("gpt-4o")
LOOKUPS = (1200, 300)
"""Tokens of a lookup: what the tool gives when the model does not say, and what a model asks for that is sparing."""


class Part(msgspec.Struct, frozen=True):
    """A package that is worked on: tests of it that take a moment, and needles in what will be printed of it."""

    name: str
    tests: str
    test: str
    words: str
    type: str


PARTS = (
    Part(
        "context",
        "tests/unit/context/test_gates.py",
        "test_uncovered_names_the_terms_that_were_not_assembled",
        "who may claim how much, in which order",
        "class Wanted",
    ),
    Part(
        "policy",
        "tests/unit/policy/test_rules.py",
        "test_a_rule_is_printed_as_it_was_read",
        "Whether a tool may go ahead, must ask, or may not",
        "class Rule",
    ),
    Part(
        "workspace",
        "tests/unit/workspace/test_lines.py",
        "test_a_large_part_that_moved_is_found_by_its_unique_lines",
        "One file is put in the place of another",
        "class Conflict",
    ),
)

counter = counting.TokenCounter()


class Errand(msgspec.Struct, frozen=True):
    """What the agent is asked, the tool that it calls, and what it looks up when it has not seen all: a query, and
    words that the output has and that the lookup must bring."""

    wish: str
    tool: str
    input: Json
    query: str | None = None
    answer: str | None = None


class Replay(msgspec.Struct, frozen=True):
    """What went over the wire: requests, tokens of their messages, tokens of tool outputs when each was first sent, by
    tool; how many lookups there were and how many brought their answer."""

    requests: int
    sent: int
    outputs: Counter[str]
    calls: Counter[str]
    produced: int = 0
    """Tokens of the outputs as they were printed."""
    lookups: int = 0
    found: int = 0


def main() -> int:
    counting.load(FAMILY)
    with tempfile.TemporaryDirectory() as folder:
        project = _project(Path(folder))
        errands = [errand for part in PARTS for errand in _errands(part)]
        without = _replayed(errands, project, Path(folder) / "without", None)
        found = {most: _replayed(errands, project, Path(folder) / f"with-{most}", most) for most in LOOKUPS}
    _tell(without, found)
    return 0


def _errands(part: Part) -> list[Errand]:
    name, python = part.name, sys.executable
    pytest = f"{python} -m pytest -n0 -v -p no:cacheprovider {part.tests}"
    ruff = f"{python} -m ruff check --select ALL --output-format concise sidecar/{name}"
    pip = f"{python} -m pip list --format freeze; {python} -m pip show -f msgspec"
    rows = [
        ("Run the tests of this part", pytest, part.test, part.test),
        ("What was done lately?", "git log --stat -n 60", "sidecar/system/parent_watch.py", "lifeline.py"),
        (
            "Which functions wait?",
            "grep -rn 'async def' sidecar",
            "release_leases",
            "async def release_leases",
        ),
        ("What is the contract?", "cat protocol/openrpc.json", '"snapshots/restore"', "snapshots/restore"),
        (
            "How large is it all?",
            "find . -name '*.py' | xargs wc -l",
            "sidecar/server/bootstrap.py",
            "sidecar/server/bootstrap.py",
        ),
        ("Show me the package", f"cat sidecar/{name}/*.py", part.words, part.words),
        ("What would the linter say?", ruff, "missing docstring in public method", "D102"),
        ("Which types does it have?", f"grep -rn -A6 '^class ' sidecar/{name}", part.type, part.type),
        ("And its tests?", f"cat tests/{name}/test_*.py", f"def {part.test}", f"def {part.test}"),
        ("What is installed?", pip, "msgspec", "msgspec=="),
    ]
    commands = [
        Errand(wish, "run_command", {"command": command, "timeout_ms": 300_000}, query, answer)
        for wish, command, query, answer in rows
    ]
    where = {"pattern": "def test_", "path": f"tests/{name}"}
    found = Errand("Where are its tests?", "grep", where, part.test, part.test)
    read = Errand(
        "Read this", "read_file", {"path": "sidecar/server/server.py", "start_line": 1, "end_line": 60}
    )
    return [*commands, found, read]


def _project(folder: Path) -> Path:
    """The files of this repository as they are committed, in a repository of their own."""
    source, project = Path(__file__).parents[1], folder / "project"
    project.mkdir()
    tar = subprocess.run(["git", "archive", "HEAD"], cwd=source, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=project, input=tar, check=True)
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("init", "-q"), ("add", "."), (*person, "commit", "-qm", "Begin")):
        subprocess.run(["git", *words], cwd=project, check=True)
    return project


def _produced(pipe: Pipe) -> int:
    """Tokens of all that tools have printed in the chat, whole: more than is sent of any output at once."""
    total, before = 0, None
    while True:
        more: Json = {"before": before} if before else {}
        page = pipe.call("chat/history", chatId="c", limit=10, **more)
        items = [item for turn in page["turns"] for item in turn["items"] if item["type"] == "tool"]
        total += sum(_count(_whole(pipe, item.get("output") or {})) for item in items)
        before = page.get("before")
        if not before:
            return total


def _whole(pipe: Pipe, output: Json) -> str:
    if "ref" not in output:
        return str(output.get("text") or "")
    data, size = b"", 1
    while len(data) < size:
        piece = pipe.call("blob/read", ref=output["ref"], offset=len(data), length=4 * 1024 * 1024)
        data, size = data + base64.b64decode(piece["data"]), piece["total"]
    return data.decode(errors="replace")


def _replayed(errands: list[Errand], project: Path, home: Path, lookup: int | None) -> Replay:
    """With lookups of so many tokens; None: without the index."""
    home.mkdir()
    settings = home / "settings.toml"
    settings.write_text(f'sandbox = "off"\n[index]\nenabled = {str(lookup is not None).lower()}\n')
    with in_thread() as fake:
        with Pipe(str(home / "data"), MODEL, SIDECAR_CONFIG=str(settings), **fake.env) as pipe:
            config = {"mode": "auto", "compaction": {"enabled": False}, "gates": {"openFiles": "never"}}
            pipe.call("chat/open", chatId="c", projectPath=str(project), config=config)
            for number, errand in enumerate(errands):
                ended = pipe.run(_prompt(errand, lookup), chatId="c", promptId=f"p{number}")
                if ended["reason"] != "end_turn":
                    raise RuntimeError(f"{errand.wish}: {ended}")
            produced = 0 if lookup else _produced(pipe)
        asked = [request for request in fake.requests if request.method == "POST"]
    return _measured(asked, errands, produced)


def _prompt(errand: Errand, lookup: int | None) -> str:
    calls = [_call(errand.tool, errand.input)]
    if lookup and errand.query:
        calls.append(_call("search_context", {"queries": [errand.query], "max_tokens": lookup}))
    return f"{errand.wish} " + "[[next]]".join([*calls, "[[say=I see.]]"])


def _call(name: str, input: Json) -> str:
    return f"[[tool={name}:{json.dumps(input)}]]"


def _measured(asked: list[Recorded], errands: list[Errand], produced: int) -> Replay:
    sent, lookups, found = 0, 0, 0
    outputs: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    answers = {json.dumps([errand.query]): errand.answer or "" for errand in errands if errand.query}
    for request in asked:
        messages = json.loads(request.body)["messages"]
        sent += sum(_count(_text(message)) for message in messages)
        if messages[-1]["role"] != "tool":
            continue  # the first request of a turn: its outputs are those of turns before
        called, text = _newest_call(messages), _text(messages[-1])
        outputs[called["name"]] += _count(text)
        calls[called["name"]] += 1
        if called["name"] == "search_context":
            lookups += 1
            found += answers[json.dumps(json.loads(called["arguments"])["queries"])] in text
    return Replay(len(asked), sent, outputs, calls, produced, lookups, found)


def _newest_call(messages: list[Json]) -> Json:
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    found: Json = next(call for call in calls if call["id"] == messages[-1]["tool_call_id"])["function"]
    return found


def _text(message: Json) -> str:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    return text + "".join(json.dumps(call["function"]) for call in message.get("tool_calls") or ())


def _count(text: str) -> int:
    return counter.count(text, FAMILY)


def _tell(without: Replay, found: dict[int, Replay]) -> None:
    heads = [f"with it, lookups of {most} | kept out" for most in found]
    print(f"| tokens | without the index | {' | '.join(heads)} |\n|---|---:|{'---:|---:|' * len(found)}")
    names = sorted({name for replay in (without, *found.values()) for name in replay.outputs})
    for name in names:
        _row(
            f"outputs of `{name}`", without.outputs[name], [replay.outputs[name] for replay in found.values()]
        )
    previews = [replay.outputs.total() - replay.outputs["search_context"] for replay in found.values()]
    outputs = [replay.outputs.total() for replay in found.values()]
    _row("outputs as they were printed; with the index without lookups", without.produced, previews)
    _row("the same, with lookups", without.produced, outputs)
    _row("outputs as they were first sent", without.outputs.total(), outputs)
    _row("sent in all requests", without.sent, [replay.sent for replay in found.values()])
    told = [f"{replay.found} of {replay.lookups} (lookups of {most})" for most, replay in found.items()]
    print(f"\nLookups that brought their answer: {', '.join(told)}.")


def _row(name: str, before: int, after: list[int]) -> None:
    cells = " | ".join(f"{one:,} | {_share(before, one)}" for one in after)
    print(f"| {name} | {before:,} | {cells} |")


def _share(before: int, after: int) -> str:
    return f"{1 - after / before:.1%}" if before else ""


if __name__ == "__main__":
    sys.exit(main())
