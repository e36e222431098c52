"""What commands can see and do, through the pipe: with the sandbox, without it, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.system import sandbox
from tests.blackbox.work.workbench import ALL, Json, Workbench, call, outputs
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.unit.system.sandboxes import ORDINARY, give, python_for, seen_folder

ROOT = Path(__file__).parents[3]
MIB = 1024 * 1024


@pytest.fixture
def place() -> Iterator[Path]:
    with seen_folder() as folder:
        yield folder


@pytest.fixture
def seen(place: Path) -> Iterator[Workbench]:
    """A bench whose home and project lie where the sandbox would show them."""
    if sandbox.detect() is None:
        pytest.skip("bubblewrap does not work here")
    spawner = Spawner(place)
    yield Workbench(spawner)
    spawner.settle()


def run(
    bench: Workbench, *commands: str, env: dict[str, str] | None = None, flags: tuple[str, ...] = ()
) -> list[str]:
    """What the commands print, each with its last line."""
    model = bench.script([*(call("run_command", command=command) for command in commands), "done"])
    sidecar = bench.spawn(*flags, model=model, env=env, capabilities=ALL)
    allow(sidecar)
    bench.open(sidecar)
    return outputs(sidecar, sidecar.run("go", chatId="c")["sessionId"])


def allow(sidecar: Sidecar) -> None:
    """Commands that name credentials ask in every mode."""
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}


def settings(bench: Workbench, text: str) -> None:
    path = bench.spawn.folder / "home/.config/sidecar/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


PLANTED = {
    **dict.fromkeys(
        ("GH_PAT", "MYSQL_PWD", "SESSION", "MY_PIN", "LICENSE", "SENTRY", "PROD_DB_AUTH"), "canary"
    ),
    "LC_SECRET": "sk-canarycanarycanary",
    "CFLAGS": "-DTOKEN=canary",
    "HTTPS_PROXY": "http://canary@proxy",
}


def test_a_command_gets_few_variables(seen: Workbench) -> None:
    (said,) = run(seen, "env; echo $JAVA_HOME", env={**PLANTED, "JAVA_HOME": "/usr/lib/jvm"})
    assert ("canary" in said, "/usr/lib/jvm" in said) == (False, True)


def test_settings_add_variables_and_folders(seen: Workbench) -> None:
    settings(seen, '[tools]\nenvironment = ["GH_PAT"]\nreadable = ["~/data"]\n')
    data = seen.spawn.folder / "home/data"
    data.mkdir()
    (data / "file").write_text("shown")
    (said,) = run(seen, "echo $GH_PAT; cat ~/data/file", env=PLANTED)
    assert said.startswith("canary\nshown")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["SIDECAR_KEY", "a-b", "1A", "", "A=B"])
def test_a_name_that_is_no_variable_is_refused(bench: Workbench, name: str) -> None:
    settings(bench, f"[tools]\nenvironment = [{json.dumps(name)}]\n")
    sidecar = bench.spawn()
    message = str(sidecar.refused("chat/open", chatId="c", projectPath=str(bench.project)))
    assert "`tools.environment`" in message
    assert "a list of names of variables" in message


CREDENTIALS = [
    ".ssh/id_rsa",
    ".netrc",
    ".config/x/token",
    ".aws/credentials",
    ".kube/config",
    ".cargo/credentials.toml",
]


def plant_credentials(home: Path) -> None:
    for name in CREDENTIALS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("canary")


def test_a_command_sees_no_credentials_of_the_home(seen: Workbench) -> None:
    seen.spawn.environment()
    plant_credentials(seen.spawn.folder / "home")
    said = run(seen, "cd ~; cat " + " ".join(CREDENTIALS), "cat /etc/shadow; ls -A ~")
    assert ["canary" in text or "root:" in text for text in said] == [False, False]


def test_a_command_sees_no_other_project(seen: Workbench, place: Path) -> None:
    for name in ("one", "two"):
        (place / "projects" / name).mkdir(parents=True)
        (place / "projects" / name / "file").write_text(f"{name}\n")
    sidecar = seen.spawn()
    for name in ("one", "two"):
        sidecar.call("chat/open", chatId=name, projectPath=str(place / "projects" / name))
    sidecar.close_stdin()
    (place / "projects/never-opened").write_text("seen\n")
    said = run(seen, f"cd {place}/projects; cat never-opened one/file two/file")
    assert (said[0].startswith("seen\n"), "one\n" in said[0], "two\n" in said[0]) == (True, False, False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["option", "variable", "link"])
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_the_named_settings_file_is_hidden_and_its_keys_are_redacted(
    seen: Workbench, way: str, mode: str
) -> None:
    keys = ["never-asked-canary-1", "never-asked-canary-2", "never-asked-canary-3"]
    named = seen.project / "my.toml"
    named.write_text(
        f'sandbox = "{mode}"\n[providers.x]\ntype = "openai"\napi_key = "{keys[0]}"\n'
        f'[providers.y]\ntype = "openai"\nheaders = {{ "X-Auth" = "Bearer {keys[1]}" }}\n'
        f'[mcp.z]\ncommand = "true"\nenabled = false\nenv = {{ A_TOKEN = "{keys[2]}" }}\n'
    )
    if way == "link":
        (seen.project / "link.toml").symlink_to("my.toml")
    path = str(seen.project / ("link.toml" if way == "link" else "my.toml"))
    flags = ("--config", path) if way != "variable" else ()
    env = {"SIDECAR_CONFIG": path} if way == "variable" else None
    said = run(seen, "cat my.toml link.toml", "grep -r canary . ; rev my.toml", env=env, flags=flags)
    assert [key for key in keys if any(key in text for text in said)] == []
    assert ("providers" in said[0], "yranac" in said[1]) == (mode == "off", mode == "off")


WITHOUT = {
    "off": ("switched_off", "the settings switch it off"),
    "missing": ("not_installed", "bubblewrap (bwrap) is not installed"),
    "broken": ("not_working", "the system does not let bubblewrap (bwrap) work"),
}


def path_without(bench: Workbench, way: str) -> str:
    """A PATH with what a command needs, and a bubblewrap that is missing or does not work."""
    folder = bench.spawn.folder / "bin"
    folder.mkdir()
    for name in ("sh", "bash", "ls", "git", "cat"):
        (folder / name).symlink_to(shutil.which(name) or "/bin/false")
    if way == "broken":
        (folder / "bwrap").symlink_to("/bin/false")
    return str(folder)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "tool",
    [
        call("run_command", command="ls"),
        call("run_batch", commands=[{"label": "a", "command": "ls"}, {"label": "b", "command": "ls -l"}]),
        call("run_code", language="shell", code="ls"),
    ],
    ids=lambda made: made["name"],
)
@pytest.mark.parametrize("way", WITHOUT)
def test_a_request_says_that_there_is_no_sandbox_and_why(bench: Workbench, way: str, tool: Json) -> None:
    settings(bench, f'sandbox = "{"off" if way == "off" else "auto"}"\n')
    sidecar = bench.spawn(
        model=bench.script([tool, "done"]),
        env={"PATH": path_without(bench, way)},
        capabilities=ALL,
    )
    bench.open(sidecar, "ask")
    request = asked(sidecar)
    code, words = WITHOUT[way]
    assert (request["sandbox"]["active"], request["sandbox"]["reasonCode"]) == (False, code)
    assert words in request["sandbox"]["reason"]


def test_a_request_says_that_there_is_a_sandbox(seen: Workbench) -> None:
    sidecar = seen.start([call("run_command", command="ls"), "done"], mode="ask")
    assert asked(sidecar)["sandbox"] == {"active": True}


def test_a_request_for_an_edit_says_nothing_of_it(bench: Workbench) -> None:
    sidecar = bench.start([call("write_file", path="x", content="x"), "done"], mode="ask")
    assert "sandbox" not in asked(sidecar)


def asked(sidecar: Sidecar) -> Json:
    """The request that comes after a prompt; the journalled event says the same."""
    sent = sidecar.say("go", chatId="c")
    request: Json = sidecar.wait_asked("permission/request")["params"]
    sidecar.call("permission/answer", permissionId=request["permissionId"], decision="deny_once")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    (event,) = sidecar.events(sent["sessionId"], "permission.requested")
    assert event["data"].get("sandbox") == request.get("sandbox")
    return request


PLANTS = {
    "echo x > .envrc": "it created .envrc",
    "mkdir .vscode; echo {} > .vscode/tasks.json": "it created .vscode",
    "echo /x > .git/commondir": "it created .git/commondir, by which git can run programs",
    "git init -q src/inner": "it created src/inner/.git, src/inner/.git/config, src/inner/.git/hooks",
    "echo x > CLAUDE.md": "it created CLAUDE.md",
    "mkdir -p src/.idea": "it created src/.idea",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", PLANTS)
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_what_a_command_plants_is_reported(bench: Workbench, mode: str, command: str) -> None:
    settings(bench, f'sandbox = "{mode}"\n')
    assert PLANTS[command] in run(bench, command)[0]


def test_without_a_sandbox_settings_of_ours_that_appear_are_reported(bench: Workbench) -> None:
    settings(bench, 'sandbox = "off"\n')
    said = run(bench, "mkdir .sidecar; echo {} > .sidecar/hooks.json; echo {} > .mcp.json")
    assert "it created .mcp.json, .sidecar, by which other programs run code or are steered" in said[0]


def test_limits_come_from_the_settings(seen: Workbench) -> None:
    settings(seen, f"[tools]\nmax_processes = 50\nmax_memory_bytes = {96 * MIB}\nmax_tmp_bytes = {2 * MIB}\n")
    grow = "python3 -c 'import time; x = bytearray(b\"1\") * 2**28; time.sleep(60)'"
    said = run(
        seen, "for i in {1..200}; do sleep 60 & done; wait", grow, "head -c 9000000 /dev/zero > /tmp/x"
    )
    assert "more than 50 processes and threads" in said[0]
    assert "more than 96 MiB of memory" in said[1]
    assert "No space left on device" in said[2]


def ordinary_spawner(place: Path) -> tuple[Spawner, dict[str, str]]:
    """Spawns the program as an ordinary user, with the environment that it needs for that."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, by setpriv")
    python = python_for(ORDINARY)
    identity = [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    spawner = Spawner(place, ["setpriv", *identity, python, "-m", "sidecar", "serve"])
    spawner.environment()
    packages = [path for path in sys.path if path.endswith("site-packages")]
    paths = [str(ROOT), str(ROOT / "protocol"), str(ROOT / "clients/python"), *packages]
    return spawner, {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(paths)}


def test_an_ordinary_user_is_confined_in_the_same_way(place: Path) -> None:
    spawner, env = ordinary_spawner(place)
    bench = Workbench(spawner)
    plant_credentials(place / "home")
    model = bench.script(
        [
            call(
                "run_command",
                command=f"env; cd ~; cat {' '.join(CREDENTIALS)}; id -u; touch /tmp/x ~/x {bench.project}/x",
            )
        ]
    )
    settings(bench, 'sandbox = "require"\n')
    give(place, ORDINARY)
    sidecar = spawner(model=model, env=PLANTED | env, capabilities=ALL)
    allow(sidecar)
    bench.open(sidecar)
    (said,) = outputs(sidecar, sidecar.run("go", chatId="c")["sessionId"])
    spawner.settle()
    assert ("canary" in said, f"\n{ORDINARY}\n" in said, "in the sandbox" in said) == (False, True, True), (
        said
    )
    assert (bench.project / "x").stat().st_uid == ORDINARY
