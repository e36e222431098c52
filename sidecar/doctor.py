"""The doctor: checks of the installation, each with a code and what to do, and the zip for a bug report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import anyio.to_thread
import msgspec

from . import __version__
from .model.chats import Page
from .model.events import encode
from .model.failures import Failure, invalid
from .settings import Settings
from .store import Store
from .store.kept import LOW_DISK_BYTES
from .store.sqlite import IS_SAFE, SAFE_VERSION
from .store.sqlite import VERSION as SQLITE_VERSION
from .store.statistics import Of
from .system.files import FileRefused, write_whole

if TYPE_CHECKING:
    from .tools.mcp import ServerConfig, Servers

_ATTENTION = ("ready", "stopped", "starting", "retrying", "failed")
"""States of an MCP server, by how much they ask for a look."""


class Check(msgspec.Struct, frozen=True):
    name: str
    status: Literal["ok", "warn", "fail"]
    code: str
    message: str
    action: str | None = None


async def examine(
    store: Store | Failure, settings: Settings | str, servers: Servers | None = None
) -> list[Check]:
    """All checks; a store or settings that could not be opened come as the reason why. Starts no server."""
    checks = [_python(), _sqlite(), _settings(settings)]
    checks += await anyio.to_thread.run_sync(_programs, settings)
    checks += _mcp(settings, servers)
    checks += await _hooks(settings)
    if isinstance(store, Failure):
        return [
            *checks,
            Check("storage", "fail", f"storage_{store.reason or 'closed'}", store.message, store.action),
        ]
    return [*checks, await _database(store), await anyio.to_thread.run_sync(_disk, store.data_dir)]


async def write_report(
    path: str, redact: bool, checks: list[Check], store: Store | None, settings: dict[str, Any]
) -> list[str]:
    """A zip with what a bug report needs and nothing that was said; `redact` leaves out titles, paths and ids."""
    if not os.path.isabs(path):
        raise invalid("path", "an absolute path")
    import platform

    about = {
        "sidecar": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "sqlite": SQLITE_VERSION,
    }
    files = {
        "about.json": about,
        "checks.json": [msgspec.structs.asdict(check) for check in checks],
        "settings.json": {key: _hidden(value, redact) for key, value in settings.items()},
    }
    if store:
        chats, _ = await store.page(Page(limit=200))
        shown = ("epoch", "last_seq", "turns", "state", "created_at", "last_activity", "archived", "model")
        private = () if redact else ("title", "project_path", "key")
        files["chats.json"] = [{name: getattr(chat, name) for name in (*shown, *private)} for chat in chats]
        files["statistics.json"] = await _figures(store, redact)
    await anyio.to_thread.run_sync(_zip, path, files)
    return list(files)


async def _figures(store: Store, redact: bool) -> dict[str, Any]:
    figures: dict[str, Any] = msgspec.to_builtins(await store.statistics(Of()))
    return figures | {"projects": [], "tools": []} if redact else figures


def _python() -> Check:
    return Check("python", "ok", "python", f"Python {sys.version.split()[0]}, sidecar {__version__}")


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
        return Check("settings", "fail", "settings_broken", settings, "Mend the file that is named")
    from .work_settings import work_settings

    try:
        work_settings(settings)
    except Failure as failure:
        return Check("settings", "fail", "settings_broken", failure.message, "Mend the file that is named")
    if settings.warnings:
        return Check("settings", "warn", "settings_withheld", "; ".join(settings.warnings), "project/trust")
    return Check("settings", "ok", "settings", f"Model {settings.model or 'chosen automatically'}")


def _programs(settings: Settings | str) -> list[Check]:
    """What other programs are for. Tries the sandbox, so it may take some seconds."""
    from .tools.searching import ripgrep

    return [_sandbox("auto" if isinstance(settings, str) else settings.sandbox), _git(), _search(ripgrep())]


def _sandbox(mode: str) -> Check:
    if mode == "off":
        return Check("sandbox", "ok", "sandbox_off", "Off in the settings: commands run unconfined")
    import shutil

    from .system import sandbox

    if sandbox.detect() is not None:
        return Check("sandbox", "ok", "sandbox", "Commands run confined by bubblewrap")
    required = mode == "require"
    missing = shutil.which("bwrap") is None
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
    import shutil

    found = shutil.which("git")
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
    """How the servers of the user's settings are, as far as chats have started them."""
    if isinstance(settings, str) or not settings.mcp:
        return []
    from .tools.mcp import parse_servers

    try:
        configs = parse_servers(settings.mcp_servers(), "mcp")
    except Failure as failure:
        return [Check("mcp", "fail", "mcp_broken", failure.message, "Mend the settings")]
    return [_server(config, servers) for config in configs]


def _server(config: ServerConfig, servers: Servers | None) -> Check:
    name = f"mcp.{config.name}"
    if not config.enabled:
        return Check(name, "ok", "mcp_off", "Switched off in the settings")
    started = [state for state in servers.states() if state.name == config.name] if servers else []
    if not started:
        return _not_started(name, config)
    # Each project has its own, in its own folder; the one that needs attention is told.
    state = max(started, key=lambda one: _ATTENTION.index(one.state))
    if state.state in ("failed", "retrying"):
        message = f"{state.state.capitalize()}: {state.error or 'no reason is known'}"
        return Check(name, "warn", f"mcp_{state.state}", message, f"Look at [{name}] in the settings")
    left_out = f"; left out: {', '.join(state.left_out)}" if state.left_out else ""
    said = f"Ready with {state.tools} tools{left_out}" if state.state == "ready" else state.state.capitalize()
    return Check(name, "ok", f"mcp_{state.state}", said)


def _not_started(name: str, config: ServerConfig) -> Check:
    """Whether its program is there can be told without starting it."""
    import shutil

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
    """What is wrong with the user's own hooks. Those of a project are in `hooks/list`."""
    if isinstance(settings, str):
        return []
    from .chat.hook_listing import examined
    from .chat.hook_places import any_there, places
    from .settings.files import user_file
    from .work_settings import work_settings

    try:
        where = places(os.path.dirname(user_file()), work_settings(settings), None)
    except Failure:
        return []  # the check of the settings tells
    if not any_there(where):
        return []
    hooks = await examined(where, trusted=False)
    broken = [f"{hook.file}: {hook.event} {hook.name}: {hook.problem}" for hook in hooks if hook.problem]
    if broken:
        message = "; ".join(" ".join(one.split()) for one in broken[:5])
        return [Check("hooks", "warn", "hooks_broken", message, "Mend the entry; before a tool it asks")]
    return [Check("hooks", "ok", "hooks", f"{len(hooks)} hooks of the user")]


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
    import shutil

    free = shutil.disk_usage(data_dir).free
    message = f"{free // (1024 * 1024)} MiB free in {data_dir}"
    if free < LOW_DISK_BYTES:
        return Check("disk", "warn", "disk_low", message, "Free some space")
    return Check("disk", "ok", "disk", message)


def _hidden(value: Any, redact: bool) -> Any:
    """Paths tell who somebody is; lists hold rules about files and the arguments of programs."""
    private = (isinstance(value, str) and os.sep in value) or (isinstance(value, list | tuple) and value)
    return "(hidden)" if redact and private else value


def _zip(path: str, files: dict[str, Any]) -> None:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, encode(content))
    try:
        write_whole(path, buffer.getvalue())
    except FileRefused as refusal:
        raise invalid("path", f"a file that can be written: {refusal}") from refusal
