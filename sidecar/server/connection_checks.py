"""Checks of the connections to coding agents: that the files are valid, that what they start exists, that hooks are
whole and registered once, and what each agent needs besides. Only reads.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from ..adapters import connections, jsonc
from ..adapters.base import Adapter, Connected
from ..adapters.registry import ADAPTERS
from ..model import FileScope
from ..model.checks import Check
from ..system.safe_open import FileRefused, read_regular

MAX_BYTES = 4 * 1024 * 1024
"""Settings files of agents hold kilobytes; `.claude.json` can grow to megabytes."""

Finding = tuple[str, str]
"""What is wrong, and what to do about it."""


def check_connections() -> list[Check]:
    """One check for each agent that is connected, for all projects or for the folder of this process."""
    home, project = str(Path.home()), os.getcwd()
    return [check for adapter in ADAPTERS.values() if (check := _check(adapter, home, project))]


def _check(adapter: Adapter, home: str, project: str) -> Check | None:
    name = f"agent.{adapter.name}"
    found = [
        one for scope in get_args(FileScope) if (one := _Connection(adapter, scope, home, project)).is_there
    ]
    if not found:
        return None
    problems = list(dict.fromkeys(problem for one in found for problem in one.problems()))
    if len([one for one in found if one.hooks_registered]) > 1:
        problems.append(
            (
                "Its hooks are registered for all projects and for this one, so each runs twice",
                f"Run `sidecar connect {adapter.name} --project --remove`",
            )
        )
    if problems:
        said, actions = zip(*problems, strict=True)
        return Check(name, "warn", "agent_problem", "; ".join(said), "; ".join(dict.fromkeys(actions)))
    scopes = " and ".join({"user": "all projects", "project": "this project"}[one.scope] for one in found)
    hooks = "tools and hooks" if any(one.hooks_work for one in found) else "tools alone"
    return Check(name, "ok", "agent", f"{adapter.title}: {hooks}, for {scopes}")


class _Connection:
    """An agent in one scope: what its files have of ours."""

    def __init__(self, adapter: Adapter, scope: FileScope, home: str, project: str) -> None:
        self._adapter = adapter
        self.scope: FileScope = scope
        self._home = home
        self._project = project
        self._invalid: list[str] = []
        self._servers_path = connections.file_path(adapter.servers, scope, home, project, os.environ)
        if (
            self._servers_path
            and not os.path.lexists(self._servers_path)
            and os.path.lexists(f"{self._servers_path}c")
        ):
            self._servers_path += "c"
        self._hooks_path = connections.file_path(adapter.hooks, scope, home, project, os.environ)
        self._entry = self._read_entry()
        self._hooks = self._read_hooks()

    @property
    def is_there(self) -> bool:
        return self._entry is not None or self.hooks_registered or bool(self._invalid)

    @property
    def hooks_registered(self) -> bool:
        return self._adapter.name in self._hooks

    @property
    def hooks_work(self) -> bool:
        """Whether our hooks run, also those of another agent's file that this one reads too."""
        return bool(self._hooks)

    def problems(self) -> Iterator[Finding]:
        again = f"Run `sidecar connect {self._adapter.name}{' --project' if self.scope == 'project' else ''}`"
        for message in self._invalid:
            yield message, "Correct the file"
        if self._entry is not None:
            yield from self._problems_of_entry(again)
        elif self.hooks_registered and not self._invalid:
            yield "Its hooks are registered, but not the server that stores what they note", again
        if self.hooks_registered:
            yield from self._problems_of_hooks(again)
        if self._servers_path and not self._invalid:
            yield from self._adapter.problems(
                Connected(
                    scope=self.scope,
                    servers=self._servers_path,
                    hooks=self._hooks_path if self.hooks_registered else None,
                    home=self._home,
                    project=self._project,
                    read=cache(_settings),
                    exists=os.path.exists,
                )
            )

    def _problems_of_entry(self, again: str) -> Iterator[Finding]:
        assert self._entry is not None
        given = self._entry.get("command")
        command = given[0] if isinstance(given, list) and given else given
        if not isinstance(command, str) or not _can_start(command):
            yield f"{self._servers_path} starts {str(command)[:200]!r}, which is no program", again
        if self._entry.get("enabled") is False or self._entry.get("disabled") is True:
            yield f"The server is switched off in {self._servers_path}", "Switch it on there"

    def _problems_of_hooks(self, again: str) -> Iterator[Finding]:
        hooks, path = self._adapter.hooks, self._hooks_path
        assert hooks is not None
        assert path is not None
        text = _read(path) or ""
        if self._hooks[self._adapter.name] < len(hooks.format.events):
            yield f"Some of its hooks are missing in {path}", again
        program = _program_of_hooks(text)
        if program is not None and not _can_start(program):
            yield f"The hooks in {path} run {program[:200]!r}, which is no program", again

    def _read_entry(self) -> Mapping[str, Any] | None:
        if self._servers_path is None or self._adapter.servers is None:
            return None
        try:
            text = _read(self._servers_path)
            return connections.server_entry(self._adapter.servers, text, self._servers_path) if text else None
        except (connections.InvalidFile, FileRefused, UnicodeDecodeError) as error:
            self._invalid.append(_said(self._servers_path, error))
            return None

    def _read_hooks(self) -> Mapping[str, int]:
        hooks = self._adapter.hooks
        if hooks is None:
            return {}
        shared = hooks.shared.get(self.scope)
        folder = self._home if self.scope == "user" else self._project
        found: dict[str, int] = {}
        for path in dict.fromkeys([self._hooks_path, shared and os.path.join(folder, shared)]):
            try:
                text = _read(path) if path else None
                found |= connections.hook_platforms(hooks, text, str(path)) if text else {}
            except (connections.InvalidFile, FileRefused, UnicodeDecodeError) as error:
                if path and path == self._hooks_path and path != self._servers_path:
                    self._invalid.append(_said(path, error))
        return found


def _said(path: str, error: Exception) -> str:
    return str(error) if isinstance(error, connections.InvalidFile) else f"{path}: {error}"


def _program_of_hooks(text: str) -> str | None:
    """The program that our hooks in a file of settings start; None for a script, which names it differently."""
    found = re.search(r"\"((?:[^\"\\]|\\.)*) hook --platform ", text)
    if found is None:
        listed = re.search(r"const COMMAND = \[\"((?:[^\"\\]|\\.)*)\"", text)
        return jsonc.parse(f'"{listed[1]}"').value if listed else None
    try:
        return shlex.split(jsonc.parse(f'"{found[1]}"').value)[0]
    except (ValueError, IndexError, jsonc.InvalidJson):
        return None


def _can_start(command: str) -> bool:
    return shutil.which(command) is not None


def _settings(path: str) -> Mapping[str, Any]:
    """The settings in a file; {} when there is none that can be read, which another check says."""
    try:
        text = _read(path) or ""
        found = tomllib.loads(text) if path.endswith(".toml") else jsonc.parse(text).value
    except (ValueError, FileRefused, jsonc.InvalidJson):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: str) -> str | None:
    try:
        return read_regular(path, MAX_BYTES).decode()
    except FileNotFoundError:
        return None
    except FileRefused:
        if not os.path.lexists(path):
            return None
        raise
