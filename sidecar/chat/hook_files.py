"""The hooks that hold in a chat: found in the user's, the project's and, where allowed, Claude Code's files.

A file is read anew when it has changed. What an untrusted project says is listed and does not run. Which hooks a call
selects is said here too; running them is `hooking`'s.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import anyio.to_thread
import msgspec

from ..policy.hooks import Hook, parsed
from ..policy.hooks.matching import JUDGE, Judged, plain, question, verdicts
from ..system import children
from ..system.dialogue import ask
from ..system.files import FileRefused, read_regular
from .hook_places import Place

MAX_FILE = 256 * 1024
"""Bytes: a hundred times the longest list of hooks that a person would write."""

JUDGE_S = 5.0
"""For all expressions together; each has its own limit within."""

MAX_JUDGED = 1000
"""Pairs of an expression and a name that are remembered; more come only from servers that rename their tools."""


class HookFiles:
    """Remembers what files said, by their identity on disk."""

    def __init__(self) -> None:
        self._known: dict[Place, tuple[tuple[int, ...], list[Hook]]] = {}

    async def read(self, places: Sequence[Place], *, trusted: bool) -> list[Hook]:
        """All hooks of these files, broken ones with what is wrong with them."""
        return await anyio.to_thread.run_sync(self._read, places, trusted)

    def _read(self, places: Sequence[Place], trusted: bool) -> list[Hook]:
        hooks = [hook for place in places for hook in self._of(place)]
        return [
            hook if hook.scope == "user" else msgspec.structs.replace(hook, trusted=trusted) for hook in hooks
        ]

    def _of(self, place: Place) -> list[Hook]:
        try:
            stat = os.stat(place.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            return [_broken(place, error.strerror or "it is not there")] if place.named else []
        except OSError as error:
            return [_broken(place, error.strerror or str(error))]
        identity = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        known = self._known.get(place)
        if known is None or known[0] != identity:
            known = self._known[place] = (identity, _read(place))
        return known[1]


class Matchers:
    """Which names the matchers of hooks select; regular expressions are tried in a process of their own."""

    def __init__(self) -> None:
        self._judged: dict[tuple[str, tuple[str, ...]], Judged] = {}

    async def selected(self, hooks: Sequence[Hook], names: tuple[str, ...]) -> list[tuple[Hook, str]]:
        """The hooks that any of the names selects, each with that name. One whose matcher is broken comes as such."""
        await self._judge({hook.matcher for hook in hooks if hook.matcher}, names)
        found: list[tuple[Hook, str]] = []
        for hook in hooks:
            chosen = self._names(hook.matcher, names) if names else frozenset(("",))
            if isinstance(chosen, str):
                found.append((msgspec.structs.replace(hook, problem=f"`matcher`: {chosen}"), ""))
            elif chosen:
                found.append((hook, next((name for name in names if name in chosen), "")))
        return found

    def _names(self, matcher: str, names: tuple[str, ...]) -> Judged:
        if not matcher:
            return frozenset(names[:1])
        listed = plain(matcher)
        return listed & set(names) if listed is not None else self._judged[matcher, names]

    async def _judge(self, matchers: set[str], names: tuple[str, ...]) -> None:
        new = [matcher for matcher in sorted(matchers) if plain(matcher) is None and names]
        new = [matcher for matcher in new if (matcher, names) not in self._judged]
        if not new:
            return
        while len(self._judged) > MAX_JUDGED:
            del self._judged[next(iter(self._judged))]
        asked = [(matcher, names) for matcher in new]
        for matcher, judged in zip(new, await _judged(asked), strict=True):
            self._judged[matcher, names] = judged


async def _judged(asked: Sequence[tuple[str, tuple[str, ...]]]) -> list[Judged]:
    try:
        said = await ask(
            [sys.executable, "-I", "-S", "-c", JUDGE],
            question(asked),
            folder=os.sep,
            environ=children.clean_environment(os.environ),
            key=f"matcher-{os.urandom(8).hex()}",
            seconds=JUDGE_S,
            most=MAX_FILE,
        )
    except OSError:
        return verdicts(None, len(asked))
    return verdicts(said.text, len(asked))


def _read(place: Place) -> list[Hook]:
    try:
        text = read_regular(place.path, MAX_FILE).decode("utf-8-sig")
    except (FileRefused, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        return [_broken(place, why)]
    return parsed(text, place.path, place.scope, claude=place.claude)


def _broken(place: Place, why: str) -> Hook:
    return Hook(file=place.path, scope=place.scope, event="", claude=place.claude, problem=why)
