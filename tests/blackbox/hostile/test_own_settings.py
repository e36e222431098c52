"""A project around the user's own settings and data, or around the program itself, such as the home: neither an edit
nor a command changes them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.system import sandbox
from sidecar.system.sandbox import SandboxView
from tests.blackbox.mutants.patching import environment, source
from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Json, Workbench, call, statuses
from tests.support.sidecar import Sidecar
from tests.unit.system.sandboxes import needed_box, run_planned

SETTINGS = "home/.config/sidecar"


@pytest.fixture
def around(bench: Workbench) -> Workbench:
    """The project is the folder that holds the home, the data and a named settings file."""
    bench.project = bench.spawn.folder
    folder = bench.project / SETTINGS
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("# mine\n")
    (bench.project / "named.toml").write_text("# named\n")
    (bench.project / "link").symlink_to(SETTINGS)
    return bench


def start(bench: Workbench, *steps: Json, mode: str) -> Sidecar:
    named = str(bench.project / "named.toml")
    sidecar = bench.spawn(
        model=bench.script([*steps, "done"]),
        capabilities={"permissions": True},
        env={"SIDECAR_CONFIG": named},
    )
    bench.open(sidecar, mode)
    answer(sidecar, "deny_once")
    return sidecar


EDITS = [
    call("write_file", path=f"{SETTINGS}/hooks.json", content="{}"),
    call("write_file", path=f"{SETTINGS}/rules/x.md", content="x"),
    call("write_file", path="link/hooks.json", content="{}"),
    call("edit_file", path=f"{SETTINGS}/config.toml", old_string="# mine", new_string="[mcp.e]"),
    call("edit_file", path="named.toml", old_string="# named", new_string="[mcp.e]"),
    call("run_command", command=f"cp notes.txt {SETTINGS}/hooks.json"),
    call("run_command", command="echo x >> named.toml"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_a_change_of_the_users_settings_asks(around: Workbench, mode: str) -> None:
    reads = [call("read_file", path=path) for path in (f"{SETTINGS}/config.toml", "named.toml")]
    sidecar = start(around, *reads, *EDITS, mode=mode)
    sidecar.answering["permission/request"] = lambda params: {
        "decision": "allow_once" if params["kind"] == "read" else "deny_once"
    }
    session = sidecar.run("go", chatId="c")["sessionId"]

    assert statuses(sidecar, session) == ["completed"] * 2 + ["denied"] * len(EDITS)
    assert not (around.project / SETTINGS / "hooks.json").exists()
    assert around.read("named.toml") == "# named\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["sidecar.db-journal", "sidecar.db-wal2", "SIDECAR.DB-x", "sidecar.db.schema-1"]
)
def test_nothing_is_written_beside_the_database_under_its_name(around: Workbench, name: str) -> None:
    sidecar = start(around, call("write_file", path=f"data/{name}", content="x"), mode="auto")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["failed"]
    assert not (around.project / "data" / name).exists()


def test_the_installations_identity_is_read_with_leave_only(around: Workbench) -> None:
    sidecar = start(around, call("read_file", path=f"{SETTINGS}/installation"), mode="ask")
    assert statuses(sidecar, sidecar.run("go", chatId="c")["sessionId"]) == ["denied"]


RENAMES = [
    "mv a x; mkdir -p a/b; echo evil > a/b/check.sh",
    "mv a/b x; mkdir -p a/b; echo evil > a/b/check.sh",
    "cp -r a y; mv a x; mv y a; echo evil > a/b/check.sh",
    "rm -rf a; mkdir -p a/b; echo evil > a/b/check.sh",
    "ln -s y z; mv -T z a/b; mkdir y; echo evil > y/check.sh",
]


@pytest.mark.parametrize("line", RENAMES)
def test_no_folder_around_what_is_read_only_is_renamed(tmp_path: Path, line: str) -> None:
    box = sandbox.detect()
    if box is None:
        pytest.skip("bubblewrap does not work here")
    project, hidden = tmp_path / "project", tmp_path / "project/c/d/settings"
    (project / "a/b").mkdir(parents=True)
    (project / "a/b/check.sh").write_text("kept\n")
    hidden.mkdir(parents=True)
    (hidden / "hooks.json").write_text("kept\n")
    view = SandboxView(read_only=[str(project / "a/b/check.sh")])
    hide = "mv c x2; mkdir -p c/d/settings; echo evil > c/d/settings/hooks.json"
    script = f"{line}; {hide}; touch ok; touch a/new c/d/new"
    argv = ["/bin/sh", "-c", script]
    run_planned(lambda: box.wrap(argv, str(project), [], [str(hidden)], str(project), view), project)

    assert (project / "a/b/check.sh").read_text() == "kept\n"
    assert (hidden / "hooks.json").read_text() == "kept\n"
    assert (project / "ok").exists()
    assert (project / "a/new").exists(), "what lies beside stays writable"


@pytest.fixture
def inside(bench: Workbench) -> Workbench:
    """The program is in the project, as in a virtual environment of the project."""
    source(bench.project, None, whole=False)
    return bench


CODE = ["__main__.py", "system/supervisor.py", "new.py", "tools/new/__init__.py"]


def test_an_edit_of_the_running_program_asks(inside: Workbench) -> None:
    steps = [call("write_file", path=f"source/sidecar/{name}", content="evil") for name in CODE[2:]]
    edit = call("insert_line", path="source/sidecar/__main__.py", line=1, text="evil")
    sidecar = inside.spawn(
        model=inside.script([call("read_file", path=edit["input"]["path"]), edit, *steps, "done"]),
        capabilities={"permissions": True},
        env=environment(inside.project / "source"),
    )
    inside.open(sidecar, "accept-edits")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["completed", *["denied"] * 3]


def test_a_command_cannot_change_the_running_program(inside: Workbench) -> None:
    needed_box()
    lines = [f"echo evil >> source/sidecar/{name}" for name in CODE]
    script = "; ".join(
        ["mkdir source/sidecar/tools/new", *lines, "mv source moved", "mv source/sidecar x", "touch ok"]
    )
    sidecar = inside.spawn(
        model=inside.script([call("run_command", command="sh build.sh"), "done"]),
        env=environment(inside.project / "source"),
    )
    (inside.project / "build.sh").write_text(script)
    inside.open(sidecar, "auto")
    sidecar.run("go", chatId="c")
    files = inside.project.rglob("*.py")
    written = [path for path in files if b"evil" in path.read_bytes()]
    assert (written, (inside.project / "ok").exists()) == ([], True)
