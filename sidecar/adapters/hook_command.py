"""`sidecar hook --platform NAME EVENT`: what a coding agent runs at the points of its session.

Standard library only, and no database: an agent waits for it. What happens is put into a folder, from which the MCP
server stores it; the text for a session is a file that the server has written. A failure never stops the agent.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module

from ..system.lazy import lazy_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    import json
    from types import FrameType
    from typing import Any

    from ..settings import files as settings_files
    from . import hook_switches
    from .base import Adapter
    from .hook_formats import HookEvent, Reply
else:
    hashlib = lazy_module("hashlib")
    json = lazy_module("json")
    settings_files = lazy_module("sidecar.settings.files")
    hook_switches = lazy_module("sidecar.adapters.hook_switches")

MAX_PAYLOAD = 32 * 1024 * 1024
"""Bytes of an event that are read; an agent sends a tool's whole output."""

MAX_OUTPUT = 256 * 1024
"""Characters of one output, unless the settings say otherwise: the default of `adapters.NAME.max_output_size`."""

MAX_WAITING = 5_000
"""Events that wait to be stored; with more, nobody has stored any for long, and new ones are dropped."""

MAX_TEXT = 64 * 1024
"""Characters of a text for a session; the server writes a few thousand."""

MAX_PROMPTS = 6
"""Prompts of a session that are shown though nobody has stored them yet."""

MAX_TRANSCRIPT = 256 * 1024
"""Bytes at the end of a session's transcript, in which its last answer is."""

MAX_SETTINGS = 256 * 1024
"""Bytes of another agent's settings in which our hook is looked for."""

LIMIT_S = 5.0
"""After this the hook gives up: an agent waits for it, and some deny a tool when it takes too long."""

LARGE_FILE = 128 * 1024
"""A file of this size fills a third of a usual context window."""

FETCH_TOOLS = ("WebFetch", "web_fetch", "fetch", "webfetch", "FetchURL")
SHELL_TOOLS = ("Bash", "bash", "run_shell_command", "shell", "Shell", "exec_command", "execute_bash")
READ_TOOLS = ("Read", "read_file", "read", "view", "ReadFile", "fs_read")

RUN_FOREIGN = ("claude-code", "copilot", "vscode")
"""Agents whose hooks other agents run too."""


def main(argv: list[str]) -> int:
    """Handle one event; the answer goes to stdout."""
    try:
        platform, event = _arguments(argv)
    except ValueError as error:
        sys.stderr.write(f"sidecar hook: {error}\n  usage: sidecar hook --platform NAME EVENT\n")
        # To an agent, a failure of the hook may mean that its tool is denied.
        return 2 if sys.stdin.isatty() else 0
    try:
        _limit_time()
        reply = _handle(platform, event, sys.stdin.buffer.read(MAX_PAYLOAD))
        return _write(reply) if reply else 0
    except Exception as error:  # an agent must go on whatever is wrong here
        sys.stderr.write(f"sidecar hook: {type(error).__name__}: {error}\n")
    return 0


def _arguments(argv: list[str]) -> tuple[str, str]:
    words = list(argv)
    if "--platform" not in words[:-1]:
        raise ValueError("--platform NAME is missing")
    at = words.index("--platform")
    platform = words[at + 1]
    rest = words[:at] + words[at + 2 :]
    if len(rest) != 1 or not platform.replace("-", "").isalnum() or not platform.islower():
        raise ValueError("one EVENT is needed")
    return platform, rest[0]


def _limit_time() -> None:
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)


def _give_up(number: int, frame: FrameType | None) -> None:
    os._exit(0)


def _handle(platform: str, name: str, raw: bytes) -> Reply | None:
    adapter = _load(platform)
    if adapter.hooks is None or name not in adapter.hooks.format.events:
        return None
    format = adapter.hooks.format
    if format.is_noise(name, raw):
        return None
    payload = json.loads(raw or b"{}")
    agent = _running_agent(adapter, payload)
    switches = hook_switches.read_switches(agent.name) if agent else None
    if agent is None or (switches and not switches.enabled):
        return None
    event = format.read(name, payload)
    event.project = os.path.realpath(
        os.environ.get(agent.project_variable or "") or event.project or os.getcwd()
    )
    transcript = format.transcript(name, payload)
    if transcript:
        event.text = format.answer_in(_tail(transcript))
    session = _Session(os.path.join(data_dir(), "agents"), agent.name, event)
    text = session.note(switches.max_output_size if switches else MAX_OUTPUT)
    if event.kind == "before_tool":
        return format.deny(name, text) if text else None
    reply = format.add_context(name, text) if text else None
    if reply:
        session.context_given()
    return reply


def _load(platform: str) -> Adapter:
    adapter: Adapter = import_module(f"sidecar.adapters.{platform.replace('-', '_')}").ADAPTER
    return adapter


def _running_agent(adapter: Adapter, payload: dict[str, Any]) -> Adapter | None:
    """The agent that runs this hook, which may be another one than it was written for; None when that one has a hook
    of its own, which it runs too.
    """
    if adapter.name not in RUN_FOREIGN:
        return adapter
    for name in ("copilot", "cursor", "vscode"):
        other = _load(name) if name != adapter.name else adapter
        if not any(mark in payload or mark in os.environ for mark in other.hook_marks):
            continue
        return other if other is adapter or not _has_own_hook(other, payload) else None
    return adapter


def _has_own_hook(adapter: Adapter, payload: dict[str, Any]) -> bool:
    hooks = adapter.hooks
    project = str(payload.get("cwd") or os.getcwd())
    paths = [os.path.join(project, hooks.project)] if hooks and hooks.project else []
    if hooks and hooks.user:
        moved = os.environ.get(hooks.moved[0]) if hooks.moved else None
        paths.append(
            os.path.join(moved, hooks.moved[1])
            if moved and hooks.moved
            else os.path.join(os.path.expanduser("~"), hooks.user)
        )
    return any(f"--platform {adapter.name}" in _read(path, MAX_SETTINGS) for path in paths)


class _Session:
    """What is known of the session that an event belongs to, in the files that hooks and server share."""

    def __init__(self, folder: str, platform: str, event: HookEvent) -> None:
        self._folder = folder
        self._platform = platform
        self._event = event

    def note(self, max_output: int) -> str:
        """Record the event; return the text for the model, or why a tool is denied."""
        event = self._event
        match event.kind:
            case "before_tool":
                return self._better_way()
            case "session_start":
                return self._text_at_start()
            case "before_compaction":
                self._put(max_output)
                self._mark("compacted")
                return self._snapshot()
            case "prompt":
                if event.text.strip():
                    self._put(max_output)
                    return self._text_at_prompt()
            case _:
                if "sidecar" not in event.tool and (event.text or event.kind == "after_tool"):
                    self._put(max_output)
        return ""

    def context_given(self) -> None:
        """The model has what there is to know; it is not given again at the next prompt."""
        self._mark("context")
        self._unmark("compacted")

    def _text_at_start(self) -> str:
        if self._event.source == "compact":
            return self._snapshot()
        if self._event.source in ("resume", "reload"):
            self._mark("context")  # the agent has the conversation itself
            return ""
        return _read(context_file(self._folder, self._event.project), MAX_TEXT)

    def _text_at_prompt(self) -> str:
        """What a start has not brought: some agents have no event for it, or take no text there."""
        if self._is_marked("compacted"):
            return self._snapshot()
        if self._is_marked("context"):
            return ""
        # Marked also without a text: what another session does meanwhile is not a start of this one.
        self._mark("context")
        return _read(context_file(self._folder, self._event.project), MAX_TEXT)

    def _snapshot(self) -> str:
        """Where the session stands, and the prompts that nobody has stored yet."""
        event = self._event
        stored = _read(session_file(self._folder, self._platform, event.session), MAX_TEXT)
        prompts = "\n".join(f"- {prompt}" for prompt in self._waiting_prompts()[-MAX_PROMPTS:])
        return "\n\n".join(filter(None, [stored, prompts and f"The user said last:\n{prompts}"]))

    def _waiting_prompts(self) -> list[str]:
        folder = os.path.join(self._folder, "events")
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        except OSError:
            return []
        found = []
        for name in names[-200:]:
            text = _read(os.path.join(folder, name), MAX_TEXT)
            if '"kind": "prompt"' in text and self._event.session in text:
                prompt = str(json.loads(text).get("text", ""))
                found.append(" ".join(prompt.replace("<", "‹").split())[:160])
        return found

    def _better_way(self) -> str:
        """Why a call should be made by another tool; "" when it is fine, or when the model insists on it."""
        event = self._event
        reason = _reason(event.tool, event.input, event.project)
        if reason and self._mark(event.tool, event.input):
            return f"{reason} If you need it all the same, make the same call again."
        return ""

    def _put(self, max_output: int) -> None:
        event, folder = self._event, os.path.join(self._folder, "events")
        if not event.session:
            return
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if len(os.listdir(folder)) >= MAX_WAITING:
            return
        record: dict[str, Any] = {
            "platform": self._platform,
            "session": event.session,
            "project": event.project,
            "kind": event.kind,
            "ts": time.time_ns() // 1_000_000,
            "text": event.text[:max_output],
            "tool": event.tool,
            "input": event.input,
            "id": event.id,
        }
        name = f"{time.time_ns():020d}-{os.getpid()}"
        temporary = os.path.join(folder, f".{name}")
        with open(temporary, "x", encoding="utf-8", errors="replace") as file:
            json.dump(record, file)
        os.rename(temporary, os.path.join(folder, f"{name}.json"))

    def _mark(self, *what: Any) -> bool:
        """Note that this happened in the session; False when it had happened before."""
        path = self._mark_path(*what)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def _is_marked(self, *what: Any) -> bool:
        return os.path.exists(self._mark_path(*what))

    def _unmark(self, *what: Any) -> None:
        path = self._mark_path(*what)
        if os.path.exists(path):
            os.unlink(path)

    def _mark_path(self, *what: Any) -> str:
        key = json.dumps([self._platform, self._event.session, *what], sort_keys=True)
        return os.path.join(self._folder, "marks", _hash(key))


def data_dir() -> str:
    """The folder of the database, by the same rule as for every other command."""
    given = os.environ.get("SIDECAR_DATA_DIR")
    if given:
        return given
    if sys.platform == "linux":
        home = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.join(
            os.path.expanduser("~"), ".local/share"
        )
        return os.path.join(home, "sidecar")
    return settings_files.default_data_dir()


def context_file(folder: str, project: str) -> str:
    """The file with the text for a new session in this project."""
    return os.path.join(folder, "context", f"{_hash(project)}.md")


def session_file(folder: str, platform: str, session: str) -> str:
    """The file that says where a session stands, for after a compaction."""
    return os.path.join(folder, "sessions", f"{_hash(f'{platform}:{session}')}.md")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]


def _reason(tool: str, given: dict[str, Any], project: str) -> str | None:
    command = str(given.get("command") or "")
    if tool in FETCH_TOOLS:
        return (
            "Use sidecar's fetch_url: the page stays out of your context, and its passages can be searched."
        )
    if tool in SHELL_TOOLS and command.split(" ", 1)[0] in ("curl", "wget") and "://" in command:
        return "Use sidecar's fetch_url instead of curl or wget: the page stays out of your context."
    if tool in READ_TOOLS and not (given.get("offset") or given.get("limit")):
        names = ("file_path", "path", "absolute_path", "filePath")
        path = next((str(given[name]) for name in names if given.get(name)), "")
        size = _size(os.path.join(project, path)) if path else 0
        if size > LARGE_FILE:
            return (
                f"The file has {size // 1024} KiB. Read a part of it, or use sidecar's index_path and search_context,"
                " or run_code to extract what you need."
            )
    return None


def _write(reply: Reply) -> int:
    if reply.data is not None:
        sys.stdout.write(json.dumps(reply.data))
    sys.stdout.write(reply.text)
    sys.stderr.write(reply.reason)
    return reply.code


def _read(path: str, most: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except OSError:
        return ""


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - MAX_TRANSCRIPT))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
