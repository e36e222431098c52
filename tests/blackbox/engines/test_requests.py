"""What an agent asks for goes through our policy, sandbox and ledger: permissions, files, terminals."""

from __future__ import annotations

import pytest

from tests.blackbox.engines.bench import EngineBench
from tests.support.wire import Json

pytestmark = pytest.mark.slow


def patches(bench: EngineBench) -> list[Json]:
    found: list[Json] = bench.sidecar.call("patches/list", chatId="c")["items"]
    return found


def test_a_command_of_the_agent_needs_a_permission(bench: EngineBench) -> None:
    bench.start()

    assert bench.said("run echo from the agent") == "ran"
    (asked,) = bench.asked
    (tool,) = bench.tools()
    assert (asked["kind"], asked["subject"]) == ("run", "echo from the agent")
    assert asked["itemId"] == tool["id"]
    assert (tool["status"], tool["output"]["text"]) == ("completed", "from the agent\n")


def test_a_denied_call_is_told_to_the_agent_and_does_not_run(bench: EngineBench) -> None:
    bench.start()
    bench.permission = "deny_once"

    assert bench.said("run touch made.txt") == "denied"
    (tool,) = bench.tools()
    assert tool["status"] == "denied"
    assert not (bench.project / "made.txt").exists()


@pytest.mark.parametrize("trait", ["", "two-always"])
def test_a_permission_for_the_chat_is_our_rule_and_the_agent_is_told_once(
    bench: EngineBench, trait: str
) -> None:
    bench.start(trait)
    bench.permission = "allow_chat"

    assert bench.said("run echo one", "run echo one") == "ranran"
    assert len(bench.asked) == 1


def test_a_rule_that_denies_decides_without_asking(bench: EngineBench) -> None:
    sidecar = bench.start()
    rule = {"effect": "deny", "kind": "run", "pattern": "touch *", "scope": "chat"}
    sidecar.call("permissionRules/set", chatId="c", **rule)

    assert bench.said("run touch made.txt") == "denied"
    assert bench.asked == []


def test_the_mode_auto_asks_nothing(bench: EngineBench) -> None:
    bench.start()
    bench.open("d", mode="auto")

    assert bench.said("run echo one", "tool jump", chat="d") == "ranallowed"
    assert bench.asked == []


def test_the_mode_read_only_denies_what_changes_something(bench: EngineBench) -> None:
    bench.start()
    bench.open("d", mode="read-only")

    assert "denied" in bench.said("run touch made.txt", chat="d")
    assert "denied" in bench.said("edit made.txt text", chat="d")
    assert not (bench.project / "made.txt").exists()


def test_a_tool_that_is_neither_file_nor_command_is_asked_by_its_name(bench: EngineBench) -> None:
    bench.start()

    assert bench.said("tool jump") == "allowed"
    assert (bench.asked[0]["kind"], bench.asked[0]["subject"]) == ("mcp", "own/jump")


def test_an_edit_is_asked_once_with_its_change_and_is_in_the_ledger(bench: EngineBench) -> None:
    bench.start()
    (bench.project / "notes.txt").write_text("old\n")

    assert bench.said("edit notes.txt new") == "edited"
    (asked,) = bench.asked
    (patch,) = patches(bench)
    assert (asked["kind"], asked["subject"], len(asked["changes"])) == ("edit", "notes.txt", 1)
    assert (patch["filePath"], patch["kind"], patch["status"]) == ("notes.txt", "modify", "applied")
    assert (bench.project / "notes.txt").read_text() == "new"
    bench.sidecar.call("patches/revert", chatId="c", id=patch["id"])
    assert (bench.project / "notes.txt").read_text() == "old\n"


def test_a_write_without_a_call_is_asked_and_is_in_the_ledger(bench: EngineBench) -> None:
    bench.start()

    assert bench.said("write made.txt text") == "written"
    assert (bench.asked[0]["kind"], bench.asked[0]["subject"]) == ("edit", "made.txt")
    assert [(patch["filePath"], patch["kind"]) for patch in patches(bench)] == [("made.txt", "create")]


def test_a_denied_write_changes_nothing(bench: EngineBench) -> None:
    bench.start()
    bench.permission = "deny_once"

    assert "denied" in bench.said("write made.txt text")
    assert not (bench.project / "made.txt").exists()
    assert patches(bench) == []


def test_files_outside_of_the_project_are_neither_read_nor_written(bench: EngineBench) -> None:
    bench.start()
    secret = bench.spawn.folder / "secret.txt"
    secret.write_text("hidden")

    assert "hidden" not in bench.said("read ../secret.txt")
    bench.said("write ../secret.txt gone")
    assert secret.read_text() == "hidden"


def test_a_file_is_read_by_our_rules(bench: EngineBench) -> None:
    sidecar = bench.start()
    (bench.project / "notes.txt").write_text("line one\n")
    (bench.project / "private.txt").write_text("hidden\n")
    sidecar.call(
        "permissionRules/set", chatId="c", effect="deny", kind="read", pattern="private.txt", scope="chat"
    )

    assert bench.said("read notes.txt") == "line one\n"
    assert "hidden" not in bench.said("read private.txt")
    assert "There is no file" in bench.said("read nothing.txt")


def test_a_terminal_runs_as_a_command_of_ours(bench: EngineBench) -> None:
    bench.start()

    assert bench.said("terminal echo in a terminal; exit 3") == "in a terminal\nexit 3"
    (asked,) = bench.asked
    assert (asked["kind"], asked["subject"]) == ("run", "echo in a terminal; exit 3")
    assert bench.tools()[0]["exitCode"] == 3


def test_a_denied_terminal_runs_nothing(bench: EngineBench) -> None:
    bench.start()
    bench.permission = "deny_once"

    assert "denied" in bench.said("terminal touch made.txt")
    assert not (bench.project / "made.txt").exists()


def test_a_killed_terminal_ends_its_processes(bench: EngineBench) -> None:
    bench.start()

    assert bench.said("kill_terminal sleep 600") == "killed None SIGKILL"


def test_a_method_that_we_do_not_have_is_refused(bench: EngineBench) -> None:
    bench.start()

    assert bench.said("unknown fs/remove_everything") == "-32601"


def test_a_cancelled_turn_answers_the_open_question_of_the_agent(bench: EngineBench) -> None:
    sidecar = bench.start()
    del sidecar.answering["permission/request"]
    sent = sidecar.say("run echo one", chatId="c")
    sidecar.wait_asked("permission/request")

    sidecar.call("turn/cancel", chatId="c")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    assert bench.said("say on") == "on"
    assert len(bench.agents()) == 1


def test_a_denial_that_stops_ends_the_turn(bench: EngineBench) -> None:
    sidecar = bench.start()
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once", "then": "stop"}

    ended = bench.run("run echo one", "say on")

    assert ended["reason"] == "cancelled"
    assert bench.text(bench.turns()[-1]) == "denied"


def test_a_file_that_the_agent_changes_itself_is_in_the_ledger(bench: EngineBench) -> None:
    bench.start()
    (bench.project / "notes.txt").write_text("old\n")
    (bench.project / "gone.txt").write_text("going\n")

    bench.run("change notes.txt new", "change made.txt text", "remove gone.txt")

    found = {patch["filePath"]: patch for patch in patches(bench)}
    assert {
        path: (patch["kind"], patch["revertible"], patch["toolName"]) for path, patch in found.items()
    } == {
        "notes.txt": ("modify", True, "acp:own"),
        "made.txt": ("create", True, "acp:own"),
        "gone.txt": ("delete", True, "acp:own"),
    }
    bench.sidecar.call("patches/revert", chatId="c", id=found["notes.txt"]["id"])
    bench.sidecar.call("patches/revert", chatId="c", id=found["gone.txt"]["id"])
    assert (bench.project / "notes.txt").read_text() == "old\n"
    assert (bench.project / "gone.txt").read_text() == "going\n"


def test_a_change_whose_old_bytes_are_unknown_is_told_and_cannot_be_reverted(bench: EngineBench) -> None:
    sidecar = bench.start()
    (bench.project / "large.txt").write_text("x" * (2 * 1024 * 1024))

    bench.run("change large.txt small")

    (patch,) = patches(bench)
    assert (patch["kind"], patch["revertible"]) == ("modify", False)
    assert "not known" in patch["summary"]
    refused = sidecar.refused("patches/revert", chatId="c", id=patch["id"])
    assert "not known" in str(refused)
    assert (bench.project / "large.txt").read_text() == "small"


def test_a_change_after_our_own_write_is_recorded_from_there(bench: EngineBench) -> None:
    bench.start()

    bench.run("write made.txt ours", "change made.txt theirs")

    assert [(patch["kind"], patch["toolName"]) for patch in patches(bench)] == [
        ("modify", "acp:own"),
        ("create", "write_text_file"),
    ]


def test_changes_of_a_cancelled_turn_are_recorded(bench: EngineBench) -> None:
    sidecar = bench.start()
    sent = sidecar.say("change made.txt text\nsay half\nwait", chatId="c")
    sidecar.wait_event(sent["sessionId"], lambda event: event["type"] == "message.delta")
    sidecar.call("turn/cancel", chatId="c")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    assert [patch["filePath"] for patch in patches(bench)] == ["made.txt"]
