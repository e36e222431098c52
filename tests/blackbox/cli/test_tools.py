"""Tool calls, plans and commands as a person meets them: in the conversation, in scripts, in the history."""

from __future__ import annotations

import subprocess

import pytest

from .shell import Shell, call

pytestmark = pytest.mark.slow

PLAN = [("Read", "completed"), ("Fix", "in_progress"), ("Test", "pending")]
READ = call("read_file", path="add.py")
EDIT = call("edit_file", path="add.py", old_string="a - b", new_string="a + b")
SHOW_PLAN = call("update_plan", plan=[{"step": step, "status": status} for step, status in PLAN])


@pytest.fixture
def project(shell: Shell) -> Shell:
    (shell.folder / "add.py").write_text("def add(a, b):\n    return a - b\n")
    return shell


@pytest.fixture
def worked(project: Shell) -> Shell:
    """A shell whose chat `c` has read, planned, changed a file and run a command."""
    run = call("run_command", command="echo hello; exit 3")
    project.play([READ, SHOW_PLAN, EDIT, run, call("read_file", path="no.py"), "**Done.**"])
    assert project.output("chat", "--chat", "c", "--mode", "auto", "go") == "**Done.**\n"
    return project


def test_calls_and_plans_are_shown_as_they_happen(project: Shell) -> None:
    project.play(["I *look*.", [READ, call("read_file", path="no.py")], SHOW_PLAN, EDIT, "Done."])
    with project.terminal("chat", "--mode", "accept-edits") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        for line in [
            "I look.",
            "● Read",
            "Plan",
            "  ✓ Read",
            "  ▸ Fix",
            "  ☐ Test",
            "● Edit add.py ✓ +1 -1",
            "Done.",
        ]:
            screen.wait_for(line)
        screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0
    assert "● Read add.py ✓" in screen.seen
    assert "● Read no.py ✗\n" in screen.seen
    assert "There is no file no.py" in screen.seen
    assert "Update the plan ✓" not in screen.seen


def test_output_is_seen_while_a_command_still_runs(project: Shell) -> None:
    """The command waits for a file that is made only once its first line was seen."""
    wait = "echo first-line; until test -e go; do sleep 0.05; done; echo last-line"
    project.play([call("run_command", command=wait), "Done."])
    with project.terminal("chat", "--mode", "auto") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for("\n  first-line")
        (project.folder / "go").touch()
        screen.wait_for("exit code 0")
        screen.wait_for("\n  last-line")
        screen.wait_for("Done.")


def test_a_call_that_the_mode_denies_says_why(project: Shell) -> None:
    project.play([READ, EDIT, "Over."])
    with project.terminal("chat", "--mode", "read-only") as screen:
        screen.wait_for("> ")
        screen.enter("go")
        screen.wait_for("● Edit add.py ✗ denied")
        screen.wait_for("the chat is read-only")
        screen.wait_for("Over.")


@pytest.mark.parametrize(
    ("mode", "step", "told"),
    [
        ("ask", EDIT, "; --mode accept-edits allows it, or edit(=add.py) in permissions.allow"),
        (
            "ask",
            call("run_command", command="gizmo"),
            "; --mode auto allows it, or run(=gizmo) in permissions",
        ),
        ("read-only", EDIT, "the chat is read-only; another --mode allows it"),
        ("auto", call("write_file", path=".git/hooks/x", content=""), "only a person in a terminal"),
    ],
)
def test_a_script_is_told_of_each_denied_call_in_one_line_with_the_remedy(
    project: Shell, mode: str, step: dict[str, object], told: str
) -> None:
    (project.folder / ".git" / "hooks").mkdir(parents=True)
    project.play([READ, step, "Without it."])
    done = project.run("chat", "--mode", mode, "go")
    assert (done.returncode, done.stdout) == (0, "Without it.\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("sidecar: denied: ")
    assert told in line


def test_the_mode_gives_leave_in_a_script(project: Shell) -> None:
    project.play([READ, EDIT, "Changed."])
    assert project.output("chat", "--mode", "accept-edits", "go") == "Changed.\n"
    assert "a + b" in (project.folder / "add.py").read_text()


def test_the_project_is_the_folder_one_is_in_and_a_chat_keeps_its_own(project: Shell) -> None:
    (project.folder / "other").mkdir()
    (project.folder / "other" / "add.py").write_text("the other one\n")
    project.play([READ, "One."], [READ, "Two."], [READ, "Three."])
    project.output("chat", "--chat", "c", "--project", "other", "go")
    project.output("chat", "--chat", "c", "go")
    project.output("chat", "--chat", "d", "go")
    first, second = project.items("c")
    assert "the other one" in first["output"]["text"]
    assert second["output"]["text"] == first["output"]["text"]
    assert "return a - b" in project.items("d")[0]["output"]["text"]


def test_without_a_project_there_are_no_files(project: Shell) -> None:
    project.play([READ, "Nothing there."])
    project.output("chat", "--chat", "c", "--no-project", "go")
    assert project.items("c")[0]["status"] == "failed"


def test_show_has_calls_plans_and_changes_as_diffs(worked: Shell) -> None:
    assert worked.output("show", "c").splitlines() == [
        "> go",
        "",
        "● Read add.py ✓",
        "",
        "Plan",
        "  ✓ Read",
        "  ▸ Fix",
        "  ☐ Test",
        "",
        "● Edit add.py ✓ +1 -1",
        "",
        "```diff",
        "--- a/add.py",
        "+++ b/add.py",
        "@@ -1,2 +1,2 @@",
        " def add(a, b):",
        "-    return a - b",
        "+    return a + b",
        "```",
        "",
        "● Run echo hello; exit 3 ✗ exit code 3",
        "  hello",
        "● Read no.py ✗",
        "  There is no file no.py",
        "",
        "**Done.**",
        "",
    ]


def test_a_chat_that_is_gone_on_with_shows_its_calls_without_diffs(worked: Shell) -> None:
    with worked.terminal("chat", "--chat", "c") as screen:
        shown = screen.wait_for("Ctrl-D leaves.")
    assert "● Edit add.py ✓ +1 -1" in shown
    assert "● Run echo hello; exit 3 ✗ exit code 3" in shown
    assert "return a + b" not in shown


def test_patches_are_listed_and_written_as_one_that_git_takes(worked: Shell) -> None:
    head, row = worked.output("patches", "c").splitlines()
    assert head.split() == ["when", "status", "by", "change", "file"]
    assert row.split()[2:4] + row.split()[-1:] == ["applied", "edit_file", "add.py"]
    patch = worked.output("patches", "c", "--export")
    assert worked.run("patches", "c", "--export", "-o", "c.patch").returncode == 0
    assert (worked.folder / "c.patch").read_text() == patch
    subprocess.run(["git", "apply", "-R", "c.patch"], cwd=worked.folder, check=True)
    assert "a - b" in (worked.folder / "add.py").read_text()


def test_a_chat_without_changes_says_so_and_a_file_needs_an_export(project: Shell) -> None:
    project.output("chat", "--chat", "c", "hi")
    assert project.output("patches", "c") == "No tool has changed anything in this chat.\n"
    done = project.run("patches", "c", "-o", "x")
    assert (done.returncode, done.stderr) == (
        2,
        "sidecar: -o: it says where --export writes; give that too.\n",
    )


def test_commands_of_the_sidecar_are_drawn_in_the_terminal(project: Shell) -> None:
    with project.terminal("chat", "--chat", "c") as screen:
        for line, told in [
            ("/help", "Open files; --pin keeps them open"),
            ("/open add.py", "state"),
            ("/open:list", "state"),
            ("/patches:list", "No changes yet."),
            ("/patchs:list", "There is no command /patchs:list. Did you mean /patches:list?"),
            ("/retri", "There is no command /retri. Did you mean /retry?"),
            ("/open no.py", "error: "),
            ("/usr/bin is a path", "/usr/bin is a path"),
            ("/mode accept-edits", "The mode is accept-edits."),
            ("/mode", "The mode is accept-edits."),
            ("/mode wild", "error: "),
        ]:
            screen.wait_for("\n> ")
            screen.enter(line)
            screen.wait_for(line)
            screen.wait_for(told)
        screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0


def test_tab_completes_commands_of_both_lists_and_paths(project: Shell) -> None:
    pytest.importorskip("readline")
    with project.terminal("chat", "--chat", "c") as screen:
        for typed, completed in [("/patch", "es:"), ("/his", "tory"), ("/open ad", "d.py")]:
            screen.wait_for("\n> ")
            screen.type(typed + "\t")
            screen.wait_for(completed)
            screen.type("\x15\r")
        screen.wait_for("\n> ")
        screen.enter("/quit")
        assert screen.leave_code() == 0
