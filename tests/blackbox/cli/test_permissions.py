"""Leave for what a tool wants to do, asked on a real terminal."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest

from .shell import Shell, Terminal, call

pytestmark = pytest.mark.slow

ASKED = "[s] no, and stop"
EDIT = call("edit_file", path="add.py", old_string="a - b", new_string="a + b")
READ = call("read_file", path="add.py")
RUN = call("run_command", command="echo done-it", cwd="sub")


@pytest.fixture
def project(shell: Shell) -> Shell:
    (shell.folder / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (shell.folder / "sub").mkdir()
    return shell


def ask(screen: Terminal) -> str:
    """Send a prompt; returns what the permission request shows above its choices."""
    screen.wait_for("> ")
    screen.enter("go")
    return screen.wait_for("[y] yes, this once")


def leave(screen: Terminal) -> None:
    screen.wait_for("\n> ")
    screen.enter("/quit")
    assert screen.leave_code() == 0


def test_an_edit_is_shown_as_a_diff_in_colours_and_done_after_yes(project: Shell) -> None:
    project.play([READ, "I change it.", EDIT, "Changed."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        shown = ask(screen)
        for line in (
            "I change it.",
            "? Edit add.py",
            "asked because ",
            "-    return a - b",
            "+    return a + b",
        ):
            assert line in shown
        assert "\x1b[31m-    return a - b" in screen.raw
        assert "\x1b[32m+    return a + b" in screen.raw
        assert "edit(=add.py)" in screen.wait_for(ASKED)
        assert "a - b" in (project.folder / "add.py").read_text()
        screen.type("y")
        screen.wait_for("→ yes, this once")
        screen.wait_for("● Edit add.py ✓ +1 -1")
        screen.wait_for("Changed.")
        leave(screen)
    assert (project.folder / "add.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_code_is_shown_line_by_line_under_its_language(project: Shell) -> None:
    project.play(
        [call("run_code", language="python", code="for n in range(3):\n    print('n is', n)"), "Over."]
    )
    with project.terminal("chat", "--mode", "ask") as screen:
        shown = ask(screen)
        assert "  run_code:python" in shown
        assert "  for n in range(3):" in shown
        assert "      print('n is', n)" in shown
        screen.wait_for(ASKED)
        screen.type("y")
        screen.wait_for("n is 2")
        screen.wait_for("Over.")
        leave(screen)


def test_a_command_is_shown_with_its_folder_and_its_output_and_exit_code_after_yes(project: Shell) -> None:
    project.play([call("run_command", command="seq 1 30; exit 3", cwd="sub"), "Over."])
    with project.terminal("chat", "--mode", "ask") as screen:
        shown = ask(screen)
        assert "$ seq 1 30; exit 3" in shown
        assert f"in {project.folder}/sub" in shown
        screen.wait_for(ASKED)
        screen.type("y")
        screen.wait_for("● Run seq 1 30; exit 3 ✗ exit code 3")
        output = screen.wait_for("Over.").split()[:12]
        assert output == ["…", "22", "lines", "above", *map(str, range(23, 31))]
        leave(screen)


def test_a_command_without_a_sandbox_is_shown_with_the_reason(project: Shell) -> None:
    project.play([RUN, "Over."])
    assert project.run("config", "set", "sandbox", "off").returncode == 0
    with project.terminal("chat", "--mode", "ask") as screen:
        assert 'not in a sandbox: the settings switch it off (sandbox = "off")' in ask(screen)
        screen.wait_for(ASKED)
        screen.type("n")
        leave(screen)


@pytest.mark.parametrize(
    ("key", "told", "statuses"),
    [
        ("y", "→ yes, this once", ["completed", None]),
        ("c", "→ yes, in this chat", ["completed", "completed"]),
        ("a", "→ always in this project", ["completed", "completed"]),
        ("n", "→ no", ["denied", None]),
        ("d", "→ never in this project", ["denied", "denied"]),
    ],
)
def test_a_key_decides_this_call_and_a_standing_one_the_next(
    project: Shell, key: str, told: str, statuses: list[str | None]
) -> None:
    """None: the second call of the same command is asked for again, and then denied with `s`."""
    project.play([RUN, RUN, "The end."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        screen.type(key)
        screen.wait_for(told)
        if statuses[1] is None:
            screen.wait_for(ASKED)
            screen.type("s")
            screen.wait_for("→ no, and stop")
        else:
            screen.wait_for("The end.")
        leave(screen)
    expected = [status or "denied" for status in statuses]
    assert [item["status"] for item in project.items("c")] == expected
    assert ("a rule denies run(=echo done-it)" in screen.seen) == (key == "d")


def test_no_and_stop_ends_the_turn_and_no_with_words_tells_them_to_the_model(project: Shell) -> None:
    project.play([READ, RUN, EDIT, "Never said."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        screen.type("f")
        screen.wait_for("Tell the model: ")
        screen.enter("use the other folder")
        screen.wait_for("● Run echo done-it ✗ denied")
        screen.wait_for(ASKED)
        screen.type("s")
        screen.wait_for("● Edit add.py ✗ denied")
        leave(screen)
    _, run, edit = project.items("c")
    assert "use the other folder" in run["output"]["text"]
    assert edit["status"] == "denied"
    assert project.items("c", "message") == []
    assert "a - b" in (project.folder / "add.py").read_text()


@pytest.mark.parametrize("typed", ["\r", " ", "x", "\x1b[A", "\x1bOP", "yes", "\x04"])
def test_what_is_no_choice_asks_again(project: Shell, typed: str) -> None:
    project.play([RUN, "Over."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        screen.type(typed)
        screen.wait_for("Press one of y, c, a, n, d, f, s.")
        screen.type("n")
        screen.wait_for("→ no")
        screen.wait_for("Over.")
        leave(screen)
    assert [item["status"] for item in project.items("c")] == ["denied"]


def test_what_was_typed_before_the_question_is_no_answer_to_it(project: Shell) -> None:
    project.play(["Soon I ask.", {"delayMs": 500}, RUN, "Over."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for("Soon I ask.")
        screen.type("y")
        screen.wait_for(ASKED)
        screen.type("n")
        screen.wait_for("→ no")
        screen.wait_for("Over.")
        screen.enter("es")
        screen.wait_for(" out\n")
        leave(screen)
    assert [item["status"] for item in project.items("c")] == ["denied"]


def test_ctrl_c_denies_and_cancels_the_turn(project: Shell) -> None:
    project.play([READ, EDIT, "Never said."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        screen.type("\x03")
        screen.wait_for("\ncancelled")
        leave(screen)
    assert "a - b" in (project.folder / "add.py").read_text()
    assert project.items("c", "message") == []
    assert [item["status"] for item in project.items("c")] == ["completed", "cancelled"]


def test_ctrl_c_while_words_for_the_model_are_typed_cancels_the_turn(project: Shell) -> None:
    project.play([READ, EDIT, "Never said."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        screen.type("f")
        screen.wait_for("Tell the model: ")
        screen.type("half a sen")
        screen.interrupt("\ncancelled")
        leave(screen)
    assert project.items("c", "message") == []


@pytest.mark.skipif(sys.platform != "linux", reason="finds the sidecar through /proc")
def test_a_question_whose_sidecar_is_gone_disappears_with_a_note(project: Shell) -> None:
    project.play([RUN])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        os.kill(screen.child(), signal.SIGKILL)
        screen.wait_for("No longer asked")
        screen.wait_for("interrupted: the sidecar ended before the answer did")
        screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0


def test_calls_that_ask_at_once_are_asked_one_after_another(project: Shell) -> None:
    for name in (".env", ".netrc"):
        (project.folder / name).write_text("SECRET=1\n")
    project.play([[call("read_file", path=".env"), call("read_file", path=".netrc")], "Both decided."])
    with project.terminal("chat", "--chat", "c", "--mode", "ask") as screen:
        ask(screen)
        screen.wait_for(ASKED)
        screen.type("y")
        second = screen.wait_for(ASKED)
        assert second.count("\n? ") == 1
        screen.type("n")
        screen.wait_for("Both decided.")
        leave(screen)
    assert sorted(item["status"] for item in project.items("c")) == ["completed", "denied"]


def test_a_long_diff_is_cut_to_the_screen_with_a_count_and_shown_whole_when_asked_for(project: Shell) -> None:
    text = "".join(f"line {number}\n" for number in range(200))
    project.play([call("write_file", path="long.txt", content=text), "Over."])
    with project.terminal("chat", "--mode", "ask") as screen:
        shown = ask(screen)
        lines = re.findall(r"\+line \d+", shown)
        hidden = re.search(r"… (\d+) more lines not shown; \[v\] shows all", shown)
        assert hidden
        assert 3 <= len(lines) <= 24
        assert len(lines) + int(hidden[1]) == 200
        screen.wait_for(ASKED)
        screen.type("v")
        assert screen.wait_for(ASKED).count("+line ") == 200
        screen.type("n")
        screen.wait_for("Over.")
        leave(screen)


def test_control_characters_of_files_and_commands_do_not_reach_the_terminal(project: Shell) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[8mhidden\x9b3J\r\u202ereversed"
    project.play(
        [
            call("write_file", path="evil.txt", content=evil + "\n"),
            call("run_command", command=f"printf '%s' '{evil}'"),
            "Over.",
        ]
    )
    with project.terminal("chat", "--mode", "ask") as screen:
        assert "␛]0;owned␇␛[2J␛[8mhidden" in ask(screen)
        screen.wait_for(ASKED)
        screen.type("y")
        assert "␛]0;owned␇␛[2J␛[8mhidden" in screen.wait_for(ASKED)
        screen.type("y")
        screen.wait_for("Over.")
        leave(screen)
    assert re.findall("\x1b]0;|\x1b\\[2J|\x1b\\[8m|\x07|\x9b|\u202e", screen.raw) == []
    assert (project.folder / "evil.txt").read_bytes().decode() == evil + "\n"


def test_the_answer_may_go_into_a_file_while_the_question_is_on_the_terminal(project: Shell) -> None:
    project.play([READ, EDIT, "Changed."])
    with project.terminal("chat", "--mode", "ask", "go", stdout=project.folder / "out.txt") as screen:
        screen.wait_for(ASKED)
        screen.type("y")
        assert screen.leave_code() == 0
    assert (project.folder / "out.txt").read_text() == "Changed.\n"
    assert "a + b" in (project.folder / "add.py").read_text()
