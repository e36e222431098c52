"""What the doctor says of sandbox, programs and MCP servers, none of which it starts."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from sidecar.model.checks import Check
from sidecar.model.failures import Failure
from sidecar.server import doctor
from sidecar.settings import Settings, load
from sidecar.system import sandbox
from sidecar.tools.mcp import parse_servers
from tests.unit.tools.mcp.mounting import Mount, mounting, plain, processes, token_of

from .conftest import Places

CLOSED = Failure("storage", "not here")


async def checks(settings: Settings | str, mount: Mount | None = None) -> dict[str, Check]:
    found = await doctor.examine(CLOSED, settings, mount.servers if mount else None)
    return {check.name: check for check in found}


def settings_with(places: Places, text: str) -> Settings:
    places.put(places.user, text)
    return load(environ={})


def quoted(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sandbox, "detect", sandbox.detect.__wrapped__)


@pytest.mark.usefixtures("no_programs")
async def test_what_is_not_installed_is_a_warning_with_a_remedy(places: Places) -> None:
    found = await checks(load(environ={}))

    assert [found[name] for name in ("sandbox", "git", "ripgrep")] == [
        Check(
            "sandbox",
            "warn",
            "sandbox_missing",
            "Bubblewrap is not installed: commands run unconfined",
            'Install bubblewrap (bwrap), or set sandbox = "off" to go without',
        ),
        Check("git", "warn", "git_missing", "Git is not on PATH: no git diff", "Install git"),
        Check(
            "ripgrep",
            "warn",
            "ripgrep_missing",
            "ripgrep (rg) is not on PATH: grep uses a slower way",
            "Install ripgrep",
        ),
    ]


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize(
    ("mode", "status", "code"), [("off", "ok", "sandbox_off"), ("require", "fail", "sandbox_missing")]
)
async def test_a_missing_sandbox_weighs_as_much_as_it_is_wanted(
    places: Places, mode: str, status: str, code: str
) -> None:
    found = (await checks(settings_with(places, f'sandbox = "{mode}"')))["sandbox"]

    assert (found.status, found.code) == (status, code)


@pytest.mark.usefixtures("no_programs")
async def test_a_sandbox_that_the_system_refuses_is_told_as_such(places: Places, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)

    found = (await checks(load(environ={})))["sandbox"]

    assert (found.status, found.code) == ("warn", "sandbox_refused")


@pytest.mark.skipif(not (shutil.which("git") and shutil.which("rg")), reason="needs git and ripgrep")
async def test_what_is_there_is_told_with_its_place(places: Places) -> None:
    found = await checks(load(environ={}))

    assert {name: found[name].message for name in ("git", "ripgrep")} == {
        "git": shutil.which("git"),
        "ripgrep": shutil.which("rg"),
    }


@pytest.mark.skipif(sandbox.detect() is None, reason="bubblewrap does not work here")
async def test_a_sandbox_that_works_is_told(places: Places) -> None:
    assert (await checks(load(environ={})))["sandbox"].code == "sandbox"


async def test_broken_settings_still_let_the_programs_be_looked_at(places: Places) -> None:
    found = await checks("config.toml: is not valid TOML")

    assert (found["settings"].status, "sandbox" in found, "git" in found) == ("fail", True, True)


async def test_a_rule_that_is_not_understood_is_a_failure(places: Places) -> None:
    found = (await checks(settings_with(places, "permissions.deny = ['write(x)']")))["settings"]

    assert (found.status, found.code) == ("fail", "settings_broken")
    assert f"{places.user}: `permissions.deny`: 'write(x)' is not understood" in found.message


async def test_a_server_that_no_chat_wanted_is_not_started(places: Places) -> None:
    config = plain(name="notes")
    settings = settings_with(
        places,
        f"[mcp.notes]\ncommand = '{config.command}'\nargs = {quoted(config.args)}\n"
        "[mcp.off]\ncommand = 'x'\nenabled = false\n"
        "[mcp.web]\nurl = 'http://127.0.0.1:9/mcp'\n"
        "[mcp.gone]\ncommand = 'there-is-no-such-program'\n",
    )

    found = await checks(settings)

    waits = "Not started yet; it starts when a chat wants it"
    assert {name: check for name, check in found.items() if name.startswith("mcp.")} == {
        "mcp.notes": Check("mcp.notes", "ok", "mcp_not_started", waits),
        "mcp.off": Check("mcp.off", "ok", "mcp_off", "Switched off in the settings"),
        "mcp.web": Check("mcp.web", "ok", "mcp_not_started", waits),
        "mcp.gone": Check(
            "mcp.gone",
            "warn",
            "mcp_no_program",
            "There is no program 'there-is-no-such-program' on PATH",
            "Install it, or give its full path as `command` in [mcp.gone]",
        ),
    }
    assert processes(token_of(config)) == set()


async def test_a_server_that_runs_is_told_as_it_is(places: Places, tmp_path: Path) -> None:
    config = plain(name="notes")
    text = f"[mcp.notes]\ncommand = '{config.command}'\nargs = {quoted(config.args)}\n"
    settings = settings_with(places, text)

    async with mounting(tmp_path, dict(os.environ)) as mount:
        tools = await mount.tools(config)
        found = (await checks(settings, mount))["mcp.notes"]

    assert found == Check("mcp.notes", "ok", "mcp_ready", f"Ready with {len(tools)} tools")


async def test_a_server_that_failed_is_a_warning_with_its_reason(places: Places, tmp_path: Path) -> None:
    settings = settings_with(places, "[mcp.gone]\ncommand = '/there/is/no/such/program'\n")

    async with mounting(tmp_path, dict(os.environ)) as mount:
        mount.servers.want(parse_servers(settings.mcp_servers(), "mcp"))
        await mount.reaches("failed")
        found = (await checks(settings, mount))["mcp.gone"]

    assert (found.status, found.code, found.action) == (
        "warn",
        "mcp_failed",
        "Look at [mcp.gone] in the settings",
    )
    assert "there is no program '/there/is/no/such/program'" in found.message


async def test_of_a_server_in_two_projects_the_one_that_failed_is_told(
    places: Places, tmp_path: Path
) -> None:
    settings = settings_with(places, "[mcp.notes]\ncommand = 'python'\n")
    failing = parse_servers([{"name": "notes", "command": "/there/is/no/such/program"}], "mcp")

    async with mounting(tmp_path, dict(os.environ)) as mount:
        mount.servers.want(failing)
        await mount.reaches("failed")
        await mount.tools(plain(name="notes"))
        found = (await checks(settings, mount))["mcp.notes"]

    assert (found.status, found.code) == ("warn", "mcp_failed")


async def test_the_report_tells_no_rules_and_no_arguments(places: Places, tmp_path: Path) -> None:
    text = "permissions.deny = ['read(canary)']\n[mcp.x]\ncommand = 'x'\nargs = ['--key=canary']\n"
    settings = settings_with(places, text)
    values = {key: value for key, (value, _) in settings.values_and_layers().items()}
    path = str(tmp_path / "report.zip")

    await doctor.write_report(path, [], None, values, redact=True, overwrite=False)

    with zipfile.ZipFile(path) as archive:
        said = archive.read("settings.json")
    assert b"canary" not in said
    assert b'"mcp.x.args":"(hidden)"' in said
