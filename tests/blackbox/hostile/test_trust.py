"""Trust is given to what a project's files said then: what changes them, from wherever, runs nothing outside."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from sidecar.system import sandbox, trusted_files
from sidecar.system.sandbox import MountPoints
from tests.blackbox.hooks.bench import HookBench
from tests.blackbox.work.workbench import call
from tests.support.patience import PATIENCE_S
from tests.support.spawner import Spawner
from tests.unit.system.sandboxes import needed_box, run_planned

READ = call("read_file", path="a.txt")


@pytest.fixture
def bench(spawn: Spawner) -> HookBench:
    made = HookBench(spawn)
    (made.project / "a.txt").write_text("text\n")
    return made


def planted(bench: HookBench) -> str:
    hook = {"type": "command", "command": f"echo ran >> {bench.log}"}
    return json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}})


WAYS = [
    "mkdir -p .sidecar && cp plant .sidecar/hooks.json",
    "mkdir -p x && cp plant x/hooks.json && ln -s x .sidecar",
    "mkdir -p y && cp plant y/hooks.json && mv y .sidecar",
    "rm -rf .sidecar; mkdir .sidecar; cat plant > .sidecar/hooks.json",
    "cp plant h && mkdir -p .sidecar && ln -s ../h .sidecar/hooks.json",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_command_plants_does_not_run(bench: HookBench, way: str) -> None:
    (bench.project / "plant").write_text(planted(bench))
    (bench.project / "build.sh").write_text(way + "\n")
    sidecar = bench.trusting([call("run_command", command="sh build.sh"), READ, "done"])
    sidecar.run("go", chatId="c")
    assert bench.runs() == 0


def test_a_changed_file_ends_the_trust_and_the_difference_is_shown(bench: HookBench) -> None:
    bench.hook("PreToolUse", bench.saying(""))
    sidecar = bench.trusting([READ, "one"], [READ, "two"], [READ, "three"])
    sidecar.run("go", chatId="c")
    assert bench.runs() == 1
    bench.hook("PreToolUse", f"echo planted >> {bench.log}")
    sidecar.run("go", chatId="c")
    assert bench.runs() == 1
    seen = sidecar.call("project/trust", path=str(bench.project))
    (change,) = seen["changes"]
    assert (seen["trusted"], change["path"], change["change"]) == (False, ".sidecar/hooks.json", "changed")
    assert "planted" in change["diff"]
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    sidecar.run("go", chatId="c")
    assert bench.runs() == 3


FILES = [
    ".sidecar/config.toml",
    ".sidecar/rules/deep/er.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".cursor/rules/a.mdc",
]


@pytest.mark.parametrize("name", FILES)
def test_each_file_that_decides_what_runs_is_part_of_the_record(tmp_path: Path, name: str) -> None:
    before = trusted_files.make_record(str(tmp_path))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("one")
    assert not trusted_files.matches(str(tmp_path), before)
    known = trusted_files.make_record(str(tmp_path))
    assert trusted_files.matches(str(tmp_path), known)
    stat = path.stat()
    path.write_text("two")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert not trusted_files.matches(str(tmp_path), known)
    assert [(change[0], change[1]) for change in trusted_files.changes_since(str(tmp_path), known)] == [
        (name, "changed")
    ]


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "s3cret-a"\n[mcp.e.env]\nPLAIN = "s3cret-b"\nsaid = 1\n[other]\nshown = "said"\n',
        '[mcp.e]\nenv = { A = "x\\"s3cret", B = \'s3cret\' }\nargs = ["said"]\n',
        '[mcp.e.env]\nA = """s3cret\ns3cret"""\n[mcp.f]\ncommand = "said"\n',
        '[mcp.e]\nenv.A = "s3cret"\nurl = "https://h/p?k=s3cret"\ncwd = "/said"\n',
        '{"a": {"env": {"A": "s3cret", "B":\n "s3cret"}, "headers": {"X": "s3cret"}, "cwd": "said"}}',
        '[mcp.e]\nheaders = { "X-A" = "}s3cret", "X-B" = "s3cret" }\ncommand = "said"\n',
        "[mcp.e]\ncommand = 'said'\nenv = {A = '''s3cret\ns3cret'''}\n",
        'command = "said"\n[mcp.e.env]\nA = "s3cret that was cut',
    ],
)
def test_secrets_are_not_in_the_record(tmp_path: Path, text: str) -> None:
    (tmp_path / ".sidecar").mkdir()
    (tmp_path / ".sidecar/config.toml").write_text(text)
    record = json.dumps(trusted_files.make_record(str(tmp_path)))
    assert ("s3cret" in record, "said" in record) == (False, True)


GUARDED = [".sidecar", ".claude", ".mcp.json", ".cursor"]


def test_the_guarded_names_are_those_that_are_read() -> None:
    assert sorted(GUARDED) == sorted(trusted_files.NAMES)


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("there", [True, False])
def test_guarded_names_are_read_only_in_the_sandbox_and_no_mount_point_stays(
    tmp_path: Path, name: str, there: bool
) -> None:
    box = sandbox.detect()
    if box is None:
        pytest.skip("bubblewrap does not work here")
    project = tmp_path / "project"
    project.mkdir()
    if there:
        (project / name).mkdir()
        (project / name / "kept").write_text("kept")
    script = f"touch {name}/new; rm -rf {name}; mv {name} moved; mkdir {name}; echo x > {name}; touch ok"
    argv = ["/bin/sh", "-c", script]
    run_planned(lambda: box.wrap(argv, str(project), [], [], str(project)), project)
    left = sorted(str(path.relative_to(project)) for path in project.rglob("*"))
    assert left == (sorted([name, f"{name}/kept", "ok"]) if there else ["ok"])


def test_mount_points_stay_while_another_sandbox_uses_them(tmp_path: Path) -> None:
    """Removing one would unmount it there, and the command could put a file in its place."""
    box = needed_box()
    script = "echo up; read go; echo '{}' > .mcp.json; mkdir .sidecar; touch .sidecar/hooks.json; touch ok"
    argv = box.wrap(["/bin/sh", "-c", script], str(tmp_path), [], [], str(tmp_path))
    first, another = MountPoints(str(tmp_path)), MountPoints(str(tmp_path))
    with subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        another.release()
        process.communicate(b"go\n", timeout=PATIENCE_S)
    first.release()
    assert os.listdir(tmp_path) == ["ok"]


SCRIPTS = {
    "by its path": "sh {project}/check.sh",
    "by a relative path": "sh ./check.sh",
    "by a variable": 'sh "$CLAUDE_PROJECT_DIR"/check.sh',
    "by a variable in braces": "sh ${{SIDECAR_PROJECT_DIR}}/check.sh",
    "after another command": "cd {project}; sh check.sh",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", SCRIPTS)
def test_a_command_cannot_change_the_script_of_a_hook(bench: HookBench, way: str) -> None:
    needed_box()
    script = bench.project / "check.sh"
    script.write_text("cat > /dev/null\n")
    bench.hook("PreToolUse", SCRIPTS[way].format(project=bench.project))
    evil = f"echo 'echo ran >> {bench.log}' >> check.sh; mv check.sh x; rm -f check.sh; touch alive"
    (bench.project / "build.sh").write_text(evil)
    sidecar = bench.trusting([call("run_command", command="sh build.sh"), READ, "done"])
    sidecar.run("go", chatId="c")
    alive = (bench.project / "alive").exists()
    assert (script.read_text(), bench.runs(), alive) == ("cat > /dev/null\n", 0, True)


def test_a_command_cannot_change_what_a_server_runs(bench: HookBench) -> None:
    needed_box()
    server = bench.project / "server.py"
    server.write_text("pass\n")
    config = bench.project / ".sidecar/config.toml"
    config.parent.mkdir()
    config.write_text('[mcp.e]\ncommand = "python3"\nargs = ["server.py"]\nenabled = false\n')
    sidecar = bench.trusting([call("run_command", command="echo evil >> server.py; touch alive"), "done"])
    sidecar.run("go", chatId="c")
    assert (server.read_text(), (bench.project / "alive").exists()) == ("pass\n", True)
