"""A key goes to its provider and nowhere else: not into an answer, an event, a log, a file, an argument, an export.

Each key is a canary: made up for the test, given in one of the ways, and then looked for in everything that the
sidecar leaves behind. That the search finds what is there is a test of its own.
"""

from __future__ import annotations

import json
import os
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import fake_keyring
from tests.support.sidecar import Sidecar
from tests.support.spawner import COMMAND, Spawner
from tests.support.unfriendly import RefusingServer, refusing_server

PLACES = {"frames", "log", "database", "exports", "exported file", "report", "arguments"}
"""Where a key is looked for, apart from the environment of children."""

GIVEN = [
    ("environment", "openai"),
    ("configuration", "anthropic"),
    ("--config", "openai"),
    ("memory", "gemini"),
    ("memory", "openai-responses"),
    ("keyring", "ollama"),
    ("stored", "openai"),
    ("headers", "openai"),
]


@pytest.fixture
def canary() -> str:
    return f"sk-canary-{uuid.uuid4().hex}"


@pytest.fixture
def provider() -> Iterator[RefusingServer]:
    with refusing_server() as server:
        yield server


class Watched:
    """A sidecar whose every trace is kept: its log at trace level, in a file or on stderr."""

    def __init__(self, spawn: Spawner, to_file: bool, *flags: str, **env: str) -> None:
        self.folder = spawn.folder
        self.data = spawn.data_dir
        self.log = spawn.folder / "log.txt"
        stderr = spawn.folder / "stderr.txt"
        # The shell is replaced by the sidecar, which has the same process id, and stderr in a file as a whole.
        command = ["sh", "-c", 'exec "$@" 2>>"$0"', str(stderr), *spawn.command]
        level = ["--log-level", "trace"]
        if to_file:
            with self.user_file(spawn).open("a") as file:
                file.write(f"\n[log]\nfile = '{self.log}'\n")
        own = spawn.command
        spawn.command = command
        try:
            self.sidecar = spawn(*level, *flags, model="mine:m", env=env)
        finally:
            spawn.command = own
        self.logs = [self.log, stderr] if to_file else [stderr]

    @staticmethod
    def user_file(spawn: Spawner) -> Path:
        path = spawn.folder / "home" / ".config" / "sidecar" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def use(self) -> None:
        """Whatever an app does with keys about: settings, providers, a turn that fails, what is left of it."""
        ask = self.sidecar.call
        for params in ({}, {"scope": "user"}):
            ask("settings/read", **params)
        ask("settings/write", scope="user", set={"session.max_steps": 20})
        ask("providers/list")
        ask("models/list", provider="mine")
        assert ask("providers/test", provider="mine")["ok"] is False
        ended = self.sidecar.run("Hello", chatId="c")
        assert ended["data"]["reason"] == "error"
        with suppress(AssertionError):
            self.sidecar.refused("providers/configure", provider="nobody", apiKey="x")
        self.look_around()

    def look_around(self) -> None:
        ask = self.sidecar.call
        for method in ("chat/open", "chat/history", "chat/list", "doctor/run", "stats/read"):
            ask(method, **({"chatId": "c"} if method in ("chat/open", "chat/history") else {}))
        ask("chat/export", chatId="c")
        ask("chat/export", chatId="c", format="markdown")
        ask("chat/export", chatId="c", path=str(self.folder / "chat.jsonl"))
        ask("doctor/report", path=str(self.folder / "report.zip"), redact=False)

    def where(self, key: str) -> set[str]:
        """The places that have the key."""
        while_running = {
            "arguments": _of_processes(self.sidecar.pid, "cmdline"),
            "database": _files(self.data),
        }
        self.sidecar.close_stdin()
        self.sidecar.wait()
        found = {
            "frames": json.dumps(self.sidecar.frames, ensure_ascii=False).encode(),
            "log": b"".join(path.read_bytes() for path in self.logs),
            "exports": _of_answers(self.sidecar, "data"),
            "exported file": (self.folder / "chat.jsonl").read_bytes(),
            "report": _unzipped(self.folder / "report.zip"),
            "arguments": while_running["arguments"],
            "database": while_running["database"] + _files(self.data),
        }
        assert found.keys() == PLACES
        assert all(found.values()), [place for place, data in found.items() if not data]
        return {place for place, data in found.items() if key.encode() in data}


def _of_answers(sidecar: Sidecar, member: str) -> bytes:
    results = [reply.get("result") for reply in sidecar.replies]
    texts = [result[member] for result in results if isinstance(result, dict) and member in result]
    return "".join(text for text in texts if isinstance(text, str)).encode()


def _files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def _unzipped(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def _of_processes(pid: int, file: str) -> bytes:
    """What /proc says of a process and of all its descendants."""
    found = b""
    for each in [pid, *_descendants(pid)]:
        with suppress(OSError):
            found += Path(f"/proc/{each}/{file}").read_bytes()
    return found


def _descendants(pid: int) -> list[int]:
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            stat = Path(f"/proc/{name}/stat").read_text()
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                children.append(int(name))
    return children + [each for child in children for each in _descendants(child)]


def give(spawn: Spawner, way: str, type: str, url: str, key: str, to_file: bool) -> Watched:
    """A sidecar that has the key, given in this way, for a provider at this address."""
    base = f"{url}/v1" if type.startswith("openai") else url
    table = f'[providers.mine]\ntype = "{type}"\nbase_url = "{base}"\nretries = 0\n'
    flags: list[str] = []
    env: dict[str, str] = {}
    if way == "environment":
        table += 'api_key_env = "MINE"\n'
        env["MINE"] = key
    elif way == "configuration":
        table += f'api_key = "{key}"\n'
    elif way == "--config":
        named = spawn.folder / "named.toml"
        named.write_text(f'[providers.mine]\ntype = "{type}"\napi_key = "{key}"\n')
        flags += ["--config", str(named)]
    elif way == "headers":
        table += f'headers = {{"X-Api-Secret" = "{key}"}}\n'
    elif way in ("keyring", "stored"):
        env |= fake_keyring.environment(**({"mine": key} if way == "keyring" else {}))
    Watched.user_file(spawn).write_text(table)
    watched = Watched(spawn, to_file, *flags, **env)
    if way == "memory":
        watched.sidecar.call("providers/configure", provider="mine", apiKey=key)
    elif way == "stored":
        watched.sidecar.call("providers/configure", provider="mine", apiKey=key, store="keyring")
    return watched


own_command = pytest.mark.skipif(COMMAND[1:2] != ["-m"], reason="about this program's own log and keyring")


@pytest.mark.sampled(1)
@own_command
@pytest.mark.parametrize("to_file", [False, True], ids=["log to stderr", "log to a file"])
@pytest.mark.parametrize(("way", "type"), GIVEN)
def test_a_key_reaches_its_provider_and_nothing_else(
    spawn: Spawner, provider: RefusingServer, canary: str, way: str, type: str, to_file: bool
) -> None:
    watched = give(spawn, way, type, provider.url, canary, to_file)
    watched.use()

    assert provider.heard
    assert all(canary in heard for heard in provider.heard), "the key did not get to the provider"
    assert watched.where(canary) == set()


@own_command
def test_the_search_finds_a_canary_wherever_one_is(spawn: Spawner, canary: str) -> None:
    """Planted as what it is not, a prompt, a title, an option and a notification, it is nobody's secret."""
    watched = Watched(spawn, True, "--chat-id", canary)
    watched.sidecar.notify(canary)
    watched.sidecar.run(canary, chatId="c", overrides={"model": "echo:"})
    watched.sidecar.call("chat/rename", chatId="c", title=canary)
    watched.look_around()

    assert watched.where(canary) == PLACES


@pytest.mark.sampled(1)
@own_command
@pytest.mark.parametrize("place", ["memory", "keyring"])
def test_a_settings_page_is_told_everything_but_the_key(spawn: Spawner, canary: str, place: str) -> None:
    sidecar = spawn(env=fake_keyring.environment())
    info = sidecar.call("providers/configure", provider="openai", apiKey=canary, store=place)
    taken = sidecar.call("providers/configure", provider="openai", apiKey=None, store=place)

    assert (info["keySource"], info["ready"], "keySource" in taken, taken["ready"]) == (
        place,
        True,
        False,
        False,
    )
    assert canary not in json.dumps(sidecar.frames)


@own_command
def test_a_written_key_is_kept_in_the_file_and_masked_in_the_answers(spawn: Spawner, canary: str) -> None:
    sidecar = spawn()
    headers = {"X-Secret": canary, "X-Other": canary}
    change = {"providers.openai.api_key": canary, "providers.openai.headers": headers}
    written = sidecar.call("settings/write", scope="user", set=change)
    effective = sidecar.call("settings/read")["values"]

    assert canary in Path(written["path"]).read_text()
    assert effective["providers.openai.api_key"] == {"value": "(set)", "layer": "user"}
    assert effective["providers.openai.headers"]["value"] == dict.fromkeys(headers, "(set)")
    assert canary not in json.dumps(sidecar.frames)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wrong", ["{} ", "{}\n", "{}\u00e9", "{}\u0000"])
def test_a_refused_key_is_not_repeated(spawn: Spawner, canary: str, wrong: str) -> None:
    sidecar = spawn("--log-level", "trace")
    key = wrong.format(canary)
    for params in (
        {"provider": "openai", "apiKey": key},
        {"provider": canary, "apiKey": canary},
        {"provider": "openai", "baseUrl": f"http://me:{canary}@host"},
    ):
        assert sidecar.refused("providers/configure", **params).code == -32602
    change = {"providers.openai.api_key": key}
    assert sidecar.refused("settings/write", scope="user", set=change).code == -32602
    assert canary not in json.dumps([sidecar.frames, sidecar.log_lines()])


@own_command
def test_the_keyring_is_left_alone_until_a_key_is_missing(spawn: Spawner, canary: str) -> None:
    opened = spawn.folder / "opened"
    env = fake_keyring.environment() | {fake_keyring.TRACE: str(opened), "OPENAI_API_KEY": canary}
    sidecar = spawn(env=env)
    sidecar.run("Hello", chatId="c")
    sidecar.call("settings/read")
    sidecar.call("providers/configure", provider="openai", baseUrl=None)
    before = opened.exists()
    sidecar.call("providers/list")

    assert (before, opened.exists()) == (False, True)


@own_command
async def test_the_worker_of_a_local_model_is_told_no_key(
    canary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sidecar.providers.local.child import ModelWorker
    from sidecar.providers.local.files import LocalModel

    for name in ("OPENAI_API_KEY", "MINE", "SIDECAR_TOKEN"):
        monkeypatch.setenv(name, canary)
    worker = await ModelWorker.start(LocalModel("m", str(tmp_path / "m.gguf"), (0, 0), "m", 8), 60)
    told = _of_processes(worker.pid, "environ") + _of_processes(worker.pid, "cmdline")
    await worker.kill()

    assert (b"PATH=" in told, b"worker" in told, canary.encode() in told) == (True, True, False)
