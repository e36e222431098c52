"""A model does a real task in a repository, and is killed and resumed between any two steps of it."""

from __future__ import annotations

import pytest

from tests.blackbox.work.workbench import Json, Workbench, call, statuses, tools
from tests.support.sidecar import Sidecar

TEST = "python3 -B -c 'import sys; sys.path.insert(0, \"src\"); from add import add; assert add(1, 2) == 3'"
READ = call("read_file", path="src/add.py")
NOTE = call("write_file", path="docs/log.md", content="# Log\n\nadd was wrong.\n")
FIX = call("edit_file", path="src/add.py", old_string="a - b", new_string="a + b")
LINE = call("insert_line", path="src/add.py", line=0, text='"""Sums."""')
RUN = call("run_command", command=TEST)
STEPS = [READ, RUN, NOTE, FIX, LINE, RUN]


def test_read_edit_run_tests_fix(bench: Workbench) -> None:
    sidecar = bench.start([*STEPS, "Fixed."])
    ended = sidecar.run("fix add", chatId="c")

    session = ended["sessionId"]
    assert statuses(sidecar, session) == [
        "completed", "failed", "completed", "completed", "completed", "completed"
    ]  # fmt: skip
    assert bench.read("src/add.py") == '"""Sums."""\ndef add(a, b):\n    return a + b\n'
    assert tools(sidecar, session)[-1]["exitCode"] == 0
    check_account(bench, sidecar)


@pytest.mark.slow
@pytest.mark.parametrize("killed_after", range(len(STEPS)))
def test_a_kill_between_two_steps_loses_nothing(bench: Workbench, killed_after: int) -> None:
    """The turn is gone on with by a model that does what is left; what was done stays done, once."""
    done, left = STEPS[: killed_after + 1], STEPS[killed_after + 1 :]
    first = bench.start([*done, {"hang": True}])
    sent = first.say("fix add", chatId="c")
    for count in range(len(done)):
        first.wait_event(sent["sessionId"], "tool.ended", skip=_skip(first, sent["sessionId"], count))
    first.kill()

    second = bench.start([*left, "Fixed."])
    again = second.call("turn/retry", chatId="c", promptId="again", **{"from": "here"})
    assert second.wait_turn(again["sessionId"], again["turnId"])["data"]["reason"] == "end_turn"
    assert bench.read("src/add.py") == '"""Sums."""\ndef add(a, b):\n    return a + b\n'
    check_account(bench, second)


def check_account(bench: Workbench, sidecar: Sidecar) -> None:
    """Files, ledger and open files are as the journal says, and the ledger as git counts."""
    events = sidecar.journal(sidecar.call("chat/open", chatId="c")["sessionId"])
    recorded = [event["data"] for event in events if event["type"] == "patch.recorded"]
    assert {patch["filePath"] for patch in recorded} == {"docs/log.md", "src/add.py"}
    bench.git("add", "-N", ".")
    exported = sidecar.call("patches/export", chatId="c")
    assert numstat(exported["patch"]) == sorted(bench.git("diff", "--numstat").splitlines())
    listed = sidecar.call("files/list", chatId="c")["files"]
    updated: list[list[Json]] = [
        event["data"]["files"] for event in events if event["type"] == "files.updated"
    ]
    assert listed == updated[-1]
    assert {file["path"] for file in listed} == {bench.path("src/add.py"), bench.path("docs/log.md")}


def numstat(patch: str) -> list[str]:
    """What a patch adds and removes, file by file, as `git diff --numstat` prints it."""
    counts: dict[str, list[int]] = {}
    name = ""
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            name = line.rpartition(" b/")[2]
            counts[name] = [0, 0]
        elif line.startswith("+") and not line.startswith("+++ "):
            counts[name][0] += 1
        elif line.startswith("-") and not line.startswith("--- "):
            counts[name][1] += 1
    return sorted(f"{added}\t{removed}\t{name}" for name, (added, removed) in counts.items())


def _skip(sidecar: Sidecar, session: str, count: int) -> int:
    """How many events to pass over to find the next end of a tool after `count` of them."""
    seen = 0
    for place, event in enumerate(sidecar.events(session)):
        if event["type"] == "tool.ended":
            seen += 1
            if seen == count:
                return place + 1
    return 0
