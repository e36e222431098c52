"""A project whose folders are on PATH, such as an activated virtual environment: a program that a command leaves there
never runs outside of the sandbox, unless the user means it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.blackbox.hooks.bench import HookBench
from tests.blackbox.work.workbench import Json, call, outputs, statuses
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.unit.system.sandboxes import needed_box

pytestmark = pytest.mark.slow

NAMES = ("rg", "git", "python3", "node", "bash", "sh", "cat", "bwrap", "env")
USES = [
    call("grep", pattern="return"),
    call("git_diff"),
    call("run_code", language="python", code="print(1)"),
    call("run_code", language="javascript", code="console.log(1)"),
    call("run_code", language="typescript", code="console.log(1)"),
    call("run_command", command="echo hi"),
    call("read_file", path="a.txt"),
]
PLANT = call("run_command", command="sh plant.sh")


@pytest.fixture
def bench(spawn: Spawner) -> HookBench:
    needed_box()
    made = HookBench(spawn)
    (made.project / "a.txt").write_text("text\n")
    return made


def plant(bench: HookBench, folder: str, names: tuple[str, ...] = NAMES) -> None:
    """Let a command leave programs that log whether they run outside: the log cannot be written in the sandbox."""
    lines = [f"mkdir -p {folder}"]
    for name in names:
        # Before the real program, so that what uses it goes on.
        text = f'#!/bin/sh\\necho {name} >> {bench.log}\\nPATH=/usr/bin:/bin exec {name} "$@"\\n'
        lines.append(f"printf '{text}' > {folder}/{name}; chmod +x {folder}/{name}")
    (bench.project / "plant.sh").write_text("\n".join([*lines, "touch planted"]))


def path_with(*folders: Path) -> dict[str, str]:
    return {"PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]])}


def run(bench: HookBench, sidecar: Sidecar) -> list[str]:
    """What asks, such as a command whose hook fails, is allowed."""
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert (bench.project / "planted").exists(), outputs(sidecar, session)
    return statuses(sidecar, session)


ENTRIES = {
    "an activated environment": ".venv/bin",
    "packages of node": "node_modules/.bin",
    "a folder that is missing at first": "tools/bin",
    "the project itself": ".",
    "a hidden folder": ".bin",
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_tool_starts_a_program_that_a_command_has_planted(bench: HookBench, entry: str) -> None:
    folder = bench.project / ENTRIES[entry]
    if "missing" not in entry:
        folder.mkdir(parents=True, exist_ok=True)
    plant(bench, ENTRIES[entry])
    sidecar = bench.start([PLANT, *USES, "done"], [*USES, "done"], env=path_with(folder))
    run(bench, sidecar)
    first = bench.runs()
    sidecar.close_stdin()
    sidecar.wait()
    # A new process looks for its programs, and for the sandbox, when they are there already.
    again = bench.spawn(model=bench.script([*USES, "done"]), env=path_with(folder))
    bench.open(again)
    run(bench, again)
    assert (first, bench.runs()) == (0, 0), bench.log.read_text()


def test_none_of_another_project_is_started(bench: HookBench) -> None:
    """A process serves many projects, and has the PATH of the terminal that started it."""
    plant(bench, ".venv/bin")
    sidecar = bench.start([PLANT, "done"], env=path_with(bench.project / ".venv/bin"))
    run(bench, sidecar)
    sidecar.close_stdin()
    sidecar.wait()
    other = bench.spawn.folder / "other"
    other.mkdir()
    again = bench.spawn(model=bench.script([*USES, "done"]), env=path_with(bench.project / ".venv/bin"))
    again.call("chat/open", chatId="d", projectPath=str(other), config={"mode": "auto"})
    again.run("go", chatId="d")
    assert bench.runs() == 0


HOOKS = {
    "an interpreter": "python3 -c 'pass'",
    "a program of the system": "cat > /dev/null",
    "a program that is only in the project": "lint",
    "a shell": "sh -c true",
    "after another": "true && env > /dev/null",
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("entry", [".venv/bin", "node_modules/.bin", "missing/bin"])
def test_a_hook_runs_no_program_that_a_command_has_planted(bench: HookBench, hook: str, entry: str) -> None:
    folder = bench.project / entry
    if entry != "missing/bin":
        folder.mkdir(parents=True)
        (folder / "lint").write_text("#!/bin/sh\n")
        (folder / "lint").chmod(0o755)
    if entry == ".venv/bin":
        (bench.project / ".venv/pyvenv.cfg").write_text("")
    bench.hook("PreToolUse", HOOKS[hook])
    plant(bench, entry, (*NAMES, "lint"))
    sidecar = bench.trusting([PLANT, *USES[-2:], "done"], env=path_with(folder))
    run(bench, sidecar)
    assert bench.runs() == 0


def test_packages_of_an_environment_that_a_hook_uses_stay_as_they_are(bench: HookBench) -> None:
    site = bench.project / ".venv/lib/python3/site-packages"
    for path in (site, bench.project / ".venv/bin"):
        path.mkdir(parents=True)
    (bench.project / ".venv/pyvenv.cfg").write_text("")
    bench.hook("PreToolUse", "python3 -c 'pass'")
    lines = (
        "echo import os > .venv/lib/python3/site-packages/x.pth; mv .venv moved; rm -rf .venv; touch planted"
    )
    sidecar = bench.trusting(
        [call("run_command", command=lines), "done"], env=path_with(bench.project / ".venv/bin")
    )
    run(bench, sidecar)
    assert (list(site.iterdir()), (bench.project / ".venv").exists()) == ([], True)


def test_the_script_behind_a_program_of_a_hook_stays_as_it_is(bench: HookBench) -> None:
    script, folder = bench.project / "node_modules/lint/cli.js", bench.project / "node_modules/.bin"
    for path in (script.parent, folder):
        path.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (folder / "lint").symlink_to("../lint/cli.js")
    bench.hook("PreToolUse", "lint --fix")
    line = f"echo 'echo ran >> {bench.log}' >> node_modules/lint/cli.js; touch planted node_modules/new"
    sidecar = bench.trusting([call("run_command", command=line), *USES[-1:], "done"], env=path_with(folder))
    run(bench, sidecar)
    written = (bench.project / "node_modules/new").exists()
    assert (script.read_text(), bench.runs(), written) == ("#!/bin/sh\n", 0, True)


SERVERS: dict[str, tuple[Json, str]] = {
    "a script in its folder": (
        {"command": "python3", "args": ["server.py"], "cwd": "tools"},
        "tools/server.py",
    ),
    "a script of the project": ({"command": "python3", "args": ["tools/server.py"]}, "tools/server.py"),
    "a script in an option": ({"command": "node", "args": ["--require=./hook.js"]}, "hook.js"),
    "a folder": ({"command": "node", "args": ["./server"]}, "server/index.js"),
    "a program by its name": ({"command": "serve"}, ".venv/bin/serve"),
    "a program by a path": ({"command": "./tools/serve"}, "tools/serve"),
}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("way", ["chat", "settings"])
def test_a_command_cannot_change_what_a_server_starts(bench: HookBench, server: str, way: str) -> None:
    given, name = SERVERS[server]
    cwd = {"cwd": str(bench.project / given["cwd"])} if "cwd" in given else {}
    entry = {"enabled": False, **given, **cwd}
    file, folder = bench.project / name, bench.project / ".venv/bin"
    for path in (file.parent, folder):
        path.mkdir(parents=True, exist_ok=True)
    file.write_text("kept\n")
    file.chmod(0o755)
    if way == "settings":
        (bench.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"e": entry}}))
        config = bench.project / ".sidecar/config.toml"
        config.parent.mkdir()
        config.write_text(
            "[mcp.e]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
        )
    line = f"echo evil >> {name}; mv {name} gone; rm -f {name}; touch planted"
    sidecar = bench.trusting([call("run_command", command=line), "done"], env=path_with(folder))
    if way == "chat":
        sidecar.call("chat/configure", chatId="c", set={"mcpServers": [{"name": "e", **entry}]})
    run(bench, sidecar)
    assert file.read_text() == "kept\n"


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_an_edit_of_what_runs_outside_asks(bench: HookBench, mode: str) -> None:
    folder = bench.project / "bin"
    folder.mkdir()
    for name in ("check.sh", "server.py", "bin/lint", "plain.txt"):
        (bench.project / name).write_text(": old\n")
    os.link(bench.project / "check.sh", bench.project / "twin.sh")
    (bench.project / "link.sh").symlink_to("check.sh")
    (bench.project / "tools").symlink_to("bin")
    bench.hook("PreToolUse", "true; sh ./check.sh")
    patch = "--- /dev/null\n+++ b/bin/ls\n@@ -0,0 +1 @@\n+x\n"
    edits = [
        *(call("write_file", path=path, content="new\n") for path in ("check.sh", "link.sh", "twin.sh")),
        call("edit_file", path="server.py", old_string="old", new_string="new"),
        call("write_file", path="tools/new", content="x"),
        call("write_file", path="bin/deep/er", content="x"),
        call("patch_file", patch=patch),
        call("write_file", path="plain.txt", content="new\n"),
    ]
    reads = [
        call("read_file", path=path) for path in ("check.sh", "link.sh", "twin.sh", "server.py", "plain.txt")
    ]
    sidecar = bench.trusting([*reads, *edits, "done"], mode=mode, env=path_with(folder))
    server = {"name": "e", "command": "python3", "args": ["server.py"], "enabled": False}
    sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server]})
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session)[len(reads) :] == ["denied"] * 7 + ["completed"], outputs(
        sidecar, session
    )
    reasons = [asked["params"]["reason"] for asked in sidecar.asked]
    assert all("it may run outside of the sandbox" in reason for reason in reasons), reasons


def test_no_library_that_a_command_has_planted_is_loaded_outside(bench: HookBench) -> None:
    """The supervisor and bubblewrap start outside; the command itself gets the variable as it is."""
    folder = bench.project / "lib"
    folder.mkdir()
    lines = (
        "for name in libc.so.6 libpthread.so.0 libcap.so.2 libdl.so.2 libm.so.6; do echo > lib/$name; done"
    )
    plant = call("run_command", command=f"echo $LD_LIBRARY_PATH; {lines}; : > planted")
    uses = [
        call("git_diff"),
        call("run_code", language="python", code="1"),
        call("run_command", command="ls"),
    ]
    sidecar = bench.start([plant, *uses, "done"], env={"LD_LIBRARY_PATH": f"{folder}:/nowhere"})
    session = sidecar.run("go", chatId="c")["sessionId"]
    first, diff, *inside = outputs(sidecar, session)
    assert (bench.project / "planted").exists()
    assert (f"{folder}:/nowhere" in first, "New and not known to git" in diff) == (True, True)
    # Inside, no program can be started any more; outside, bubblewrap could.
    assert [("file too short" in text, "[exit code" in text) for text in inside] == [(True, True)] * 2
