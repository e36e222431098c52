"""The hooks of a chat: read from the user's, the project's and, where allowed, Claude Code's files.

A file is read again when it has changed. The hooks of an untrusted project are listed and do not run. This module
also selects the hooks for a call; `runner` runs them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio.to_thread
import msgspec

from ...policy.hooks import Hook, parse_hooks
from ...policy.hooks.matching import MATCHER_PROGRAM, MatchResult, matcher_input, parse_matches, plain_names
from ...system import process_tree
from ...system.filter_process import ask
from ...system.helper_programs import code_command
from ...system.safe_open import FileRefused, read_regular
from .locations import HookLocation

MAX_FILE = 256 * 1024
"""In bytes: a hundred times the longest list of hooks that a person would write."""

JUDGE_S = 5.0
"""For all expressions together; each also has its own limit."""

MAX_JUDGED = 1000
"""Pairs of an expression and a name whose result is cached; only servers that rename their tools cause more."""


class HookFiles:
    """Caches the content of files, by their identity on disk."""

    def __init__(self) -> None:
        self._known: dict[HookLocation, tuple[tuple[int, ...], list[Hook]]] = {}

    async def read(self, locations: Sequence[HookLocation], *, trusted: bool) -> list[Hook]:
        """All hooks of these files; broken ones carry the error."""
        return await anyio.to_thread.run_sync(self._read, locations, trusted)

    def _read(self, locations: Sequence[HookLocation], trusted: bool) -> list[Hook]:
        hooks = [hook for location in locations for hook in self._hooks_of_file(location)]
        return [
            hook if hook.scope == "user" else msgspec.structs.replace(hook, trusted=trusted) for hook in hooks
        ]

    def _hooks_of_file(self, location: HookLocation) -> list[Hook]:
        try:
            stat = os.stat(location.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            return [_broken_hook(location, error.strerror or "it is not there")] if location.named else []
        except OSError as error:
            return [_broken_hook(location, error.strerror or str(error))]
        identity = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        known = self._known.get(location)
        if known is None or known[0] != identity:
            known = self._known[location] = (identity, read_hooks(location))
        return known[1]


class Matchers:
    """Which names the matchers of hooks select; regular expressions run in a separate process."""

    def __init__(self) -> None:
        self._judged: dict[tuple[str, tuple[str, ...]], MatchResult] = {}

    async def select(self, hooks: Sequence[Hook], names: tuple[str, ...]) -> list[tuple[Hook, str]]:
        """The hooks that match any of the names, each with that name, including those with a broken matcher."""
        await self._judge({hook.matcher for hook in hooks if hook.matcher}, names)
        found: list[tuple[Hook, str]] = []
        for hook in hooks:
            chosen = self._names(hook.matcher, names) if names else frozenset(("",))
            if isinstance(chosen, str):
                words = f"`matcher`: {chosen}"
                found.append((msgspec.structs.replace(hook, problem=words, problem_code="matcher"), ""))
            elif chosen:
                found.append((hook, next((name for name in names if name in chosen), "")))
        return found

    def _names(self, matcher: str, names: tuple[str, ...]) -> MatchResult:
        if not matcher:
            return frozenset(names[:1])
        listed = plain_names(matcher)
        return listed & set(names) if listed is not None else self._judged[matcher, names]

    async def _judge(self, matchers: set[str], names: tuple[str, ...]) -> None:
        new = [matcher for matcher in sorted(matchers) if plain_names(matcher) is None and names]
        new = [matcher for matcher in new if (matcher, names) not in self._judged]
        if not new:
            return
        while len(self._judged) > MAX_JUDGED:
            del self._judged[next(iter(self._judged))]
        asked = [(matcher, names) for matcher in new]
        for matcher, judged in zip(new, await _find_matches(asked), strict=True):
            self._judged[matcher, names] = judged


async def _find_matches(queries: Sequence[tuple[str, tuple[str, ...]]]) -> list[MatchResult]:
    try:
        said = await ask(
            code_command(MATCHER_PROGRAM),
            matcher_input(queries),
            folder=os.sep,
            environ=process_tree.clean_environment(os.environ),
            key=f"matcher-{os.urandom(8).hex()}",
            seconds=JUDGE_S,
            most=MAX_FILE,
        )
    except OSError:
        return parse_matches(None, len(queries))
    return parse_matches(said.text, len(queries))


def read_hooks(location: HookLocation) -> list[Hook]:
    """The hooks of one file; a broken file is one broken hook. Blocking."""
    try:
        text = read_regular(location.path, MAX_FILE).decode("utf-8-sig")
    except (FileRefused, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        return [_broken_hook(location, why)]
    return parse_hooks(text, location.path, location.scope, claude=location.claude)


def _broken_hook(location: HookLocation, why: str) -> Hook:
    return Hook(
        file=location.path,
        scope=location.scope,
        event="",
        claude=location.claude,
        problem=why,
        problem_code="unreadable",
    )
