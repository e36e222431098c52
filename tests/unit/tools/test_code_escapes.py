"""Code that tries to leave the sandbox. Each trick is run without it too, and must work there, or it shows nothing."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from sidecar.tools.base import ToolOutcome
from tests.unit.system.shapes import clear, mentions, new_token
from tests.unit.tools.code_tricks import CONNECT, DAEMON, READ, SIGNAL, WRITE, quoted
from tests.unit.tools.coding import Mode, hands_in, needs, needs_bubblewrap, tool
from tests.unit.tools.context import carry_out

CANARY = "canary-7fe1"
COMMON = ("python", "javascript", "shell", "perl")
"""What most machines have; the others are tried where they are installed, with one trick each."""


class Place:
    """A project, the sidecar's data and a home with secrets beside it, and a place for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.home, self.temporary = folder / "data", folder / "home", folder / "temporary"
        for path in (self.data, self.home / ".ssh", self.temporary):
            path.mkdir(parents=True)
        (self.data / "chats.db").write_text(CANARY)
        (self.home / ".ssh/id_ed25519").write_text(CANARY)

    async def run(
        self, language: str, code: str, mode: Mode = "require", timeout_ms: int = 20_000
    ) -> ToolOutcome:
        needs(language)
        context = hands_in(self.folder, call_key=f"{self.folder.name}.{mode}.i1")
        input = {"language": language, "code": code, "timeout_ms": timeout_ms}
        return await carry_out(tool(mode, hidden=[str(self.data)]), input, context)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    needs_bubblewrap()
    place = Place(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(place.temporary))
    monkeypatch.setenv("RUSTUP_HOME", os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup"))
    monkeypatch.setenv("HOME", str(place.home))
    return place


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", READ)
async def test_neither_the_database_nor_the_secrets_of_the_home_can_be_read(
    place: Place, language: str
) -> None:
    for path in (place.data / "chats.db", place.home / ".ssh/id_ed25519"):
        code = READ[language] % quoted(str(path), language)
        inside = await place.run(language, code)
        assert CANARY not in inside.text
        assert "no:" in inside.text
    if language in COMMON:
        assert CANARY in (await place.run(language, code, "off")).text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("language", WRITE)
async def test_nothing_outside_the_project_can_be_written(place: Place, language: str) -> None:
    others = [place.home / ".bashrc", place.data / "planted"] if language in COMMON else []
    for path in (place.folder / "planted", *others):
        await place.run(language, WRITE[language] % quoted(str(path), language))
        assert not path.exists()
    inside = place.folder / "project/made"
    await place.run(language, WRITE[language] % quoted(str(inside), language))
    assert inside.exists()
    if language in COMMON:
        await place.run(language, WRITE[language] % quoted(str(place.folder / "planted"), language), "off")
        assert (place.folder / "planted").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", CONNECT)
async def test_there_is_no_network_not_even_to_this_machine(place: Place, language: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = CONNECT[language].replace("PORT", str(server.getsockname()[1]))
        inside = await place.run(language, code)
        outside = await place.run(language, code, "off")
    assert "no:" in inside.text
    assert "connected" not in inside.text
    assert outside.text.startswith("connected")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("language", SIGNAL)
async def test_no_process_outside_can_be_signalled_and_killing_the_parent_ends_only_itself(
    place: Place, language: str
) -> None:
    code = SIGNAL[language].replace("PID", str(os.getpid()))
    inside = await place.run(language, code)
    outside = await place.run(language, code.rpartition("\n")[0] or code.partition(" $|")[0], "off")
    assert "no:" in inside.text
    assert "reached" not in inside.text
    assert outside.text.startswith("reached")
    assert os.listdir(place.temporary) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", ["require", "off"])
@pytest.mark.parametrize("language", DAEMON)
async def test_a_daemon_ends_with_the_code_that_left_it(place: Place, language: str, mode: Mode) -> None:
    token = new_token()
    try:
        outcome = await place.run(language, DAEMON[language].replace("TOKEN", token), mode)
        assert (outcome.text.split()[0], mentions(token)) == ("left", set())
    finally:
        clear(token)


BOMB = {
    "python": "import os, time\nfor _ in range(6):\n    os.fork()\nos.execv('/bin/sleep', ['sleep', 'TOKEN'])",
    "shell": "f() { [ $1 = 0 ] || { f $(($1 - 1)) & f $(($1 - 1)) & }; exec sleep TOKEN; }; f 5",
    "perl": "fork for 1 .. 6; exec('sleep', 'TOKEN');",
}
"""Some sixty processes each, which is all that a busy machine should be asked for."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("language", "mode"), [*((name, "require") for name in BOMB), ("shell", "off")])
async def test_a_bomb_of_forks_ends_with_its_time(place: Place, language: str, mode: Mode) -> None:
    token = new_token()
    try:
        outcome = await place.run(language, BOMB[language].replace("TOKEN", token), mode, timeout_ms=1000)
        assert outcome.text.startswith("[killed: the time limit of 1 s was over")
        assert mentions(token) == set()
    finally:
        clear(token)


PROC = [
    "cat /proc/PID/environ /proc/PID/cmdline",
    "cat /proc/PID/root/DATA/chats.db /proc/PID/cwd/chats.db",
    "cat /proc/1/root/DATA/chats.db /proc/self/root/DATA/chats.db",
    "for p in /proc/[0-9]*; do cat $p/root/DATA/chats.db; tr '\\0' '\\n' < $p/environ; done",
    "for f in /proc/[0-9]*/fd/*; do readlink $f; done | grep chats.db",
    'f=/proc/sys/kernel/core_pattern; v=$(cat $f); echo "$v" > $f && echo CANARY',
    "ls /proc/PID/task && echo CANARY",
    "umount DATA; mount -t proc none /mnt; cat DATA/chats.db",
    "unshare -Urm sh -c 'umount DATA; cat DATA/chats.db'",
    "nsenter -t 1 -a cat DATA/chats.db; chroot /proc/1/root cat DATA/chats.db",
    "cp /proc/self/exe stolen; ./stolen -c 'cat DATA/chats.db'",
    "ln -s DATA/chats.db here; cat here; ln DATA/chats.db hard && cat hard",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("script", PROC)
async def test_proc_and_mounts_lead_nowhere(place: Place, script: str) -> None:
    code = script.replace("PID", str(os.getpid())).replace("DATA", str(place.data)).replace("CANARY", CANARY)
    with open(place.data / "chats.db"):  # noqa: ASYNC230  we hold it open, as the sidecar does
        outcome = await place.run("shell", f"exec 2>/dev/null\n{code}")
    assert CANARY not in outcome.text
    assert str(place.data / "chats.db") not in outcome.text.splitlines()


async def test_without_the_sandbox_proc_leads_to_it(place: Place) -> None:
    code = f"cat /proc/self/root/{place.data}/chats.db"
    assert CANARY in (await place.run("shell", code, "off")).text


@pytest.mark.parametrize("language", ["python", "shell"])
async def test_the_environment_holds_no_secret(
    place: Place, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    monkeypatch.setenv("DATABASE_URL", f"postgres://me:{CANARY}@host/db")
    code = {"python": "import os\nprint(os.environ)", "shell": "env"}[language]
    assert CANARY not in (await place.run(language, code)).text


async def test_the_code_cannot_reach_the_files_of_other_calls(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as system:
        monkeypatch.setattr(tempfile, "tempdir", system)
        os.symlink(CANARY, os.path.join(system, "sidecar-of-another"))
        code = f"ls -lA {system}"
        inside, outside = await place.run("shell", code), await place.run("shell", code, "off")
    assert CANARY not in inside.text
    assert CANARY in outside.text
