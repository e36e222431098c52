"""What a command in the sandbox can reach: the project, and nothing that would let it act outside."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from sidecar.policy.protected import is_watched
from sidecar.system import sandbox
from sidecar.system.sandbox import Sandbox
from sidecar.system.survey import compare, survey
from tests.support.patience import PATIENCE_S
from tests.unit.system.sandboxes import run_planned


@pytest.fixture
def box() -> Sandbox:
    found = sandbox.detect()
    if found is None:
        pytest.skip("bubblewrap does not work here")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


class Ran:
    """A script that was run in the sandbox, or without one, which must then show the difference."""

    def __init__(self, box: Sandbox | None, script: str, project: Path, **around: list[str]) -> None:
        argv = ["/bin/bash", "-c", script]
        if box:
            writable, hidden = around.get("writable", []), around.get("hidden", [])
            done = run_planned(lambda: box.wrap(argv, str(project), writable, hidden, str(project)), project)
        else:
            done = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=PATIENCE_S)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


def repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True, timeout=PATIENCE_S)


def test_there_is_no_network_not_even_to_this_machine(box: Sandbox, project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo connected"
        assert Ran(None, script, project).out == "connected\n"
        inside = Ran(box, script, project)
    assert (inside.code, inside.out) == (1, "")


def test_sockets_outside_the_project_cannot_be_reached(box: Sandbox, project: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "daemon"))
        assert Ran(None, f"test -S {tmp_path}/daemon", project).code == 0
        assert Ran(box, f"test -S {tmp_path}/daemon", project).code == 1
    assert Ran(box, "ls -A /run", project).out in ("", "current-system\n")


def test_only_the_project_and_further_folders_can_be_written(
    box: Sandbox, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "extra").mkdir()
    home = os.path.expanduser("~")
    script = f"touch in.txt {tmp_path}/extra/in.txt {tmp_path}/out.txt {home}/sandbox-test"
    Ran(box, script, project, writable=[str(tmp_path / "extra")])
    assert sorted(tmp_path.rglob("*.txt")) == [tmp_path / "extra/in.txt", project / "in.txt"]
    assert not Path(home, "sandbox-test").exists()


def test_a_command_cannot_mount_its_way_out(box: Sandbox, project: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/secret").write_text("secret")
    tries = [
        "mount -o remount,rw,bind /",
        "mount -o remount,rw /",
        f"umount {tmp_path}/data",
        "mount -t tmpfs none /mnt",
        "mknod sda b 8 0",
        f"unshare -Urm umount {tmp_path}/data",
        "unshare -Urm mount -o remount,rw,bind /",
    ]
    for script in tries:
        assert (
            Ran(box, f"{script}; cat {tmp_path}/data/secret", project, hidden=[str(tmp_path / "data")]).out
            == ""
        )
    assert Ran(box, f"for n in 1 2; do {tries[0]}; done; touch /etc/sandbox-test", project).code != 0


def test_the_settings_of_the_kernel_cannot_be_changed(box: Sandbox, project: Path) -> None:
    """Root may outside; a failure of this test writes what was there already."""
    script = 'f=/proc/sys/kernel/core_pattern; v=$(cat $f); echo "$v" > $f && echo written'
    assert Ran(box, script, project).out == ""
    assert Ran(None, script, project).out == ("written\n" if os.geteuid() == 0 else "")


def test_hidden_folders_and_files_are_empty(box: Sandbox, project: Path, tmp_path: Path) -> None:
    (project / "data").mkdir()
    (project / "data/chats.db").write_text("secret")
    (project / "key").write_text("secret")
    script = "ls -A data; cat data/chats.db key; echo x > data/new"
    assert "secret" in Ran(None, script, project).out
    (project / "data/new").unlink()
    inside = Ran(box, script, project, hidden=[str(project / "data"), str(project / "key"), "/no/such"])
    assert (inside.out, os.listdir(project / "data")) == ("", ["chats.db"])


def test_a_hidden_file_in_a_hidden_folder_harms_no_command(box: Sandbox, project: Path) -> None:
    folder = project / "hidden"
    folder.mkdir()
    (folder / "inner").write_text("secret")
    inside = Ran(box, "ls hidden; echo done", project, hidden=[str(folder), str(folder / "inner")])
    assert (inside.out, inside.err) == ("done\n", "")


def test_the_secrets_of_the_home_are_hidden_also_where_it_is_the_project(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".ssh/id_ed25519", ".aws/credentials", ".config/sidecar/config.toml", ".netrc", "work/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"in {name}\n")
    script = f"cd {tmp_path}; cat .ssh/* .aws/* .config/sidecar/* .netrc work/a"
    assert Ran(box, script, tmp_path).out == Ran(box, script, tmp_path / "work").out == "in work/a\n"


def test_a_project_within_a_hidden_folder_is_all_that_is_seen_of_it(
    box: Sandbox, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("secret")
    assert Ran(box, f"ls {tmp_path}; touch new", project, hidden=[str(tmp_path)]).out == "project\n"
    assert os.listdir(project) == ["new"]


PLANT = [
    "echo evil > .git/hooks/pre-commit",
    "git config core.fsmonitor evil",
    "echo evil >> .git/config",
    "rm -rf .git; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "mv .git away; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "mv .git/hooks .git/away; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
    "rm .git/config; echo evil > .git/config",
    "echo evil > new; mv -f new .git/config",
    "ln -sf /tmp .git/hooks/pre-commit; rmdir .git/hooks; ln -s ../evil .git/hooks",
]


@pytest.mark.parametrize("hooks", ["there", "missing", "a link"])
@pytest.mark.parametrize("script", PLANT)
def test_what_git_would_run_later_cannot_be_planted(
    box: Sandbox, project: Path, script: str, hooks: str
) -> None:
    repository(project)
    for sample in (project / ".git/hooks").iterdir():
        sample.unlink()
    if hooks != "there":
        (project / ".git/hooks").rmdir()
    if hooks == "a link":
        (project / "shared").mkdir()
        (project / ".git/hooks").symlink_to("../shared")
    before = (project / ".git/config").read_bytes()
    Ran(box, script, project)
    assert (project / ".git/config").read_bytes() == before
    assert os.listdir(project / ".git/hooks") == []


@pytest.mark.parametrize("script", PLANT[:3])
def test_without_the_sandbox_it_is_planted(project: Path, script: str) -> None:
    repository(project)
    before = sorted((path, path.read_bytes()) for path in (project / ".git").rglob("*") if path.is_file())
    Ran(None, script, project)
    after = sorted((path, path.read_bytes()) for path in (project / ".git").rglob("*") if path.is_file())
    assert after != before


def test_git_can_commit(box: Sandbox, project: Path) -> None:
    repository(project)
    script = "touch a; git add a; git -c user.name=me -c user.email=me@example.org commit -qm one; git log --format=%s"
    assert Ran(box, script, project).out == "one\n"


def test_a_link_in_place_of_git_brings_nothing_in(box: Sandbox, project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside/hooks").mkdir(parents=True)
    (project / ".git").symlink_to("../outside")
    Ran(box, f"touch .git/hooks/evil {tmp_path}/outside/evil", project)
    assert os.listdir(tmp_path / "outside") == ["hooks"]
    assert os.listdir(tmp_path / "outside/hooks") == []


def test_what_a_command_planted_where_nothing_was_is_told(box: Sandbox, project: Path) -> None:
    before = survey(str(project), is_watched)
    Ran(box, "git init -q .", project)
    created, changed = compare(before, survey(str(project), is_watched))
    assert (created, changed) == ([".git", ".git/config", ".git/hooks"], [])


def test_other_processes_are_not_seen(box: Sandbox, project: Path) -> None:
    inside = Ran(box, f"kill -0 {os.getpid()} || ls -d /proc/[0-9]* | wc -l", project)
    assert int(inside.out) < 6


def test_without_bubblewrap_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 0\n")  # it does as if, and runs nothing
    broken.chmod(0o755)
    for path in ("/nowhere", str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        sandbox.detect.cache_clear()
        assert sandbox.detect() is None
    sandbox.detect.cache_clear()
