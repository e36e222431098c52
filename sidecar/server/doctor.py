"""The doctor: checks of the installation, each with a code and a remedy, and the zip for a bug report."""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
import msgspec

from .. import __version__
from ..chat.actions.hook_listing import check_hooks
from ..chat.hooks.locations import any_exist, hook_locations
from ..chat.services.named_files import check_absolute, write_client_file
from ..model.chats import ChatQuery
from ..model.checks import Check
from ..model.events import encode
from ..model.failures import Failure
from ..model.figures import Statistics
from ..providers.registry import ProviderRegistry
from ..settings import Settings, user_file
from ..store import Store
from ..store.engine.opening import FILE_NAME
from ..store.engine.sqlite import IS_SAFE, SAFE_VERSION
from ..store.engine.sqlite import VERSION as SQLITE_VERSION
from ..store.lifecycle import LOW_DISK_BYTES
from ..store.tables.statistics import StatisticsScope
from ..system import distribution, installation, processes, sandbox
from ..system.distribution import Claim
from ..system.programs import find_program
from ..text.plural import counted
from ..tools.files.file_search import find_ripgrep
from ..tools.mcp import ServerConfig, Servers, parse_servers
from .connection_checks import check_connections
from .model_check import check_model
from .settings_conversion import project_settings

_STATE_ORDER = ("ready", "stopped", "starting", "retrying", "failed")
"""States of an MCP server, the one that needs most attention last."""

_REINSTALL = "Run `pip uninstall {name}`, then `pip install --force-reinstall --no-deps chat-sidecar`"


async def examine(
    store: Store | Failure,
    settings: Settings | str,
    servers: Servers | None = None,
    providers: ProviderRegistry | None = None,
) -> list[Check]:
    """Run all checks. A store or settings that could not be opened are passed as the error. Starts no server."""
    checks = [_python(), await anyio.to_thread.run_sync(_distribution), _sqlite(), _settings(settings)]
    if providers and not isinstance(settings, str):
        checks.append(await check_model(providers, settings.model))
    checks += await anyio.to_thread.run_sync(_programs, settings)
    checks += _mcp(settings, servers)
    checks += await _hooks(settings)
    checks += await anyio.to_thread.run_sync(check_connections)
    if isinstance(store, Failure):
        return [
            *checks,
            Check("storage", "fail", f"storage_{store.reason or 'closed'}", store.message, store.action),
        ]
    running = await anyio.to_thread.run_sync(_running, store.data_dir)
    return [*checks, running, await _database(store), await anyio.to_thread.run_sync(_disk, store.data_dir)]


async def write_report(
    path: str,
    checks: list[Check],
    store: Store | None,
    settings: Mapping[str, Any],
    *,
    redact: bool,
    overwrite: bool,
) -> tuple[int, list[str]]:
    """Write a zip with what a bug report needs and without any conversation; `redact` removes titles, paths and ids.

    Returns its size, and the names of its files.
    """
    check_absolute(path)
    about = {
        "sidecar": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "sqlite": SQLITE_VERSION,
    }
    files: dict[str, object] = {
        "about.json": about,
        "checks.json": [msgspec.structs.asdict(check) for check in checks],
        "settings.json": {key: _redacted_value(value, redact) for key, value in settings.items()},
    }
    if store:
        chats, _ = await store.chats.page(ChatQuery(limit=200))
        shown = ("epoch", "last_seq", "turns", "state", "created_at", "last_activity", "archived", "model")
        private = () if redact else ("title", "project_path", "key")
        files["chats.json"] = [{name: getattr(chat, name) for name in (*shown, *private)} for chat in chats]
        files["statistics.json"] = await _figures(store, redact)
    data = await anyio.to_thread.run_sync(_zip, files)
    await write_client_file(path, data, overwrite=overwrite)
    return len(data), list(files)


async def _figures(store: Store, redact: bool) -> Statistics:
    figures = await store.statistics(StatisticsScope())
    return msgspec.structs.replace(figures, projects=[], tools=[]) if redact else figures


def _python() -> Check:
    return Check("python", "ok", "python", f"Python {sys.version.split()[0]}, sidecar {__version__}")


def _distribution() -> Check:
    """Check that the installed `sidecar` is this program. Reads the file lists of every installed distribution."""
    claims = distribution.find_claims()
    foreign = [claim for claim in claims if not claim.is_ours]
    if foreign:
        return _foreign_distribution(foreign)
    ours = {claim.name: claim.version for claim in claims}
    if distribution.FORMER_NAME in ours:
        return Check(
            "distribution",
            "warn",
            "distribution_former_name",
            f"Installed as `{distribution.FORMER_NAME}`, the name of another project on PyPI",
            _REINSTALL.format(name=distribution.FORMER_NAME),
        )
    if distribution.NAME not in ours:
        return Check("distribution", "ok", "distribution_none", "Runs from source; not installed by pip")
    return Check("distribution", "ok", "distribution", f"{distribution.NAME} {ours[distribution.NAME]}")


def _running(data_dir: str) -> Check:
    """Check that no process that has the database open is older than what is installed."""
    installed = installation.installed_version()
    if installed and _numbers(installed) > _numbers(__version__):
        return _outdated(f"This sidecar is {__version__}, and {installed} is installed")
    since = installation.installed_at()
    if since is None or data_dir == ":memory:":
        return Check("running", "ok", "running_unknown", f"This sidecar is {__version__}")
    users = processes.processes_with_file(os.path.join(data_dir, FILE_NAME))
    old = sorted(pid for pid, started in users.items() if started < since)
    if old:
        named = " and ".join(map(str, old))
        return _outdated(
            f"{counted(len(old), 'sidecars')} older than the installed {__version__}: process {named}"
        )
    return Check("running", "ok", "running", f"{counted(len(users), 'processes')} with the database open")


def _outdated(message: str) -> Check:
    return Check("running", "warn", "running_outdated", message, "Restart the app that started it")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _foreign_distribution(foreign: list[Claim]) -> Check:
    names = " and ".join(f"`{claim.name}` {claim.version}" for claim in foreign)
    shared = any(claim.in_our_folder for claim in foreign)
    effect = "It can have replaced our files" if shared else "A program may get the wrong one"
    return Check(
        "distribution",
        "fail" if shared else "warn",
        "distribution_foreign",
        f"{names} is another project that also provides `sidecar`. {effect}",
        _REINSTALL.format(name=" ".join(claim.name for claim in foreign)),
    )


def _sqlite() -> Check:
    if IS_SAFE:
        return Check("sqlite", "ok", "sqlite", f"SQLite {SQLITE_VERSION}")
    safe = ".".join(map(str, SAFE_VERSION))
    return Check(
        "sqlite",
        "warn",
        "sqlite_old",
        f"SQLite {SQLITE_VERSION} can damage a database that several processes write; {safe} and newer cannot",
        "Install pysqlite3 where it has a wheel, or a newer Python; until then run one sidecar a database",
    )


def _settings(settings: Settings | str) -> Check:
    if isinstance(settings, str):
        return Check("settings", "fail", "settings_broken", settings, "Fix the file that the message names")
    try:
        project_settings(settings)
    except Failure as failure:
        return Check(
            "settings", "fail", "settings_broken", failure.message, "Fix the file that the message names"
        )
    if settings.warnings:
        return Check("settings", "warn", "settings_withheld", "; ".join(settings.warnings), "project/trust")
    return Check("settings", "ok", "settings", f"Model {settings.model or 'chosen automatically'}")


def _programs(settings: Settings | str) -> list[Check]:
    """Check the programs that features need. Tries the sandbox, so it may take some seconds."""
    return [
        _sandbox("auto" if isinstance(settings, str) else settings.sandbox),
        _git(),
        _search(find_ripgrep()),
    ]


def _sandbox(mode: str) -> Check:
    if mode == "off":
        return Check("sandbox", "ok", "sandbox_off", "Off in the settings: commands run unconfined")
    if sandbox.detect() is not None:
        return Check("sandbox", "ok", "sandbox", "Commands run confined by bubblewrap")
    required = mode == "require"
    missing = find_program("bwrap") is None
    reason = "is not installed" if missing else "is installed, but the system does not let it work"
    effect = "no command runs, since the settings require it" if required else "commands run unconfined"
    remedy = "Install bubblewrap (bwrap)" if missing else "Let users create namespaces"
    return Check(
        "sandbox",
        "fail" if required else "warn",
        "sandbox_missing" if missing else "sandbox_refused",
        f"Bubblewrap {reason}: {effect}",
        f'{remedy}, or set sandbox = "off" to go without',
    )


def _git() -> Check:
    found = find_program("git")
    if found is None:
        return Check("git", "warn", "git_missing", "Git is not on PATH: no git diff", "Install git")
    return Check("git", "ok", "git", found)


def _search(found: str | None) -> Check:
    if found is None:
        return Check(
            "ripgrep",
            "warn",
            "ripgrep_missing",
            "ripgrep (rg) is not on PATH: grep uses a slower way",
            "Install ripgrep",
        )
    return Check("ripgrep", "ok", "ripgrep", found)


def _mcp(settings: Settings | str, servers: Servers | None) -> list[Check]:
    """Check the servers of the user's settings, as far as chats have started them."""
    if isinstance(settings, str) or not settings.mcp:
        return []
    try:
        configs = parse_servers(settings.mcp_servers(), "mcp")
    except Failure as failure:
        return [Check("mcp", "fail", "mcp_broken", failure.message, "Fix the settings")]
    return [_server(config, servers) for config in configs]


def _server(config: ServerConfig, servers: Servers | None) -> Check:
    name = f"mcp.{config.name}"
    if not config.enabled:
        return Check(name, "ok", "mcp_off", "Switched off in the settings")
    started = [state for state in servers.states() if state.name == config.name] if servers else []
    if not started:
        return _not_started(name, config)
    # Each project has its own process of a server; report the one that needs attention most.
    state = max(started, key=lambda one: _STATE_ORDER.index(one.state))
    if state.state in ("failed", "retrying"):
        message = f"{state.state.capitalize()}: {state.error or 'no reason is known'}"
        return Check(name, "warn", f"mcp_{state.state}", message, f"Look at [{name}] in the settings")
    left_out = f"; left out: {', '.join(state.left_out)}" if state.left_out else ""
    said = (
        f"Ready with {counted(state.tools, 'tools')}{left_out}"
        if state.state == "ready"
        else state.state.capitalize()
    )
    return Check(name, "ok", f"mcp_{state.state}", said)


def _not_started(name: str, config: ServerConfig) -> Check:
    """Check that the server's program exists, without starting it."""
    path = config.env.get("PATH", os.environ.get("PATH"))
    if config.command and os.sep not in config.command and shutil.which(config.command, path=path) is None:
        return Check(
            name,
            "warn",
            "mcp_no_program",
            f"There is no program {config.command!r} on PATH",
            f"Install it, or give its full path as `command` in [{name}]",
        )
    return Check(name, "ok", "mcp_not_started", "Not started yet; it starts when a chat wants it")


async def _hooks(settings: Settings | str) -> list[Check]:
    """Report errors in the user's own hooks. Those of a project are in `hooks/list`."""
    if isinstance(settings, str):
        return []
    try:
        where = hook_locations(os.path.dirname(user_file()), project_settings(settings), None)
    except Failure:
        return []  # the check of the settings reports it
    if not any_exist(where):
        return []
    hooks = await check_hooks(where, trusted=False)
    broken = [f"{hook.file}: {hook.event} {hook.name}: {hook.problem}" for hook in hooks if hook.problem]
    if broken:
        message = "; ".join(" ".join(one.split()) for one in broken[:5])
        return [
            Check(
                "hooks",
                "warn",
                "hooks_broken",
                message,
                "Fix the entry; until then tools that it would check need a permission",
            )
        ]
    return [Check("hooks", "ok", "hooks", f"{counted(len(hooks), 'hooks')} of the user")]


async def _database(store: Store) -> Check:
    try:
        problems = await store.integrity()
    except Failure as failure:
        return Check("database", "fail", f"storage_{failure.reason}", failure.message, failure.action)
    if problems:
        return Check(
            "database", "fail", "storage_corrupt", "; ".join(problems[:3]), "Export what can be read"
        )
    return Check("database", "ok", "database", f"{store.data_dir}: sound")


def _disk(data_dir: str) -> Check:
    if data_dir == ":memory:":
        return Check(
            "disk", "warn", "in_memory", "Chats are kept in memory and end with the process", "Set --data-dir"
        )
    free = shutil.disk_usage(data_dir).free
    message = f"{free // (1024 * 1024)} MiB free in {data_dir}"
    if free < LOW_DISK_BYTES:
        return Check("disk", "warn", "disk_low", message, "Free some space")
    return Check("disk", "ok", "disk", message)


def _redacted_value(value: Any, redact: bool) -> Any:
    """Redact paths, which may identify a person, and lists, which contain rules about files and program arguments."""
    private = (isinstance(value, str) and os.sep in value) or (isinstance(value, list | tuple) and value)
    return "(hidden)" if redact and private else value


def _zip(files: Mapping[str, object]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, encode(content))
    return buffer.getvalue()
