"""`run_batch`: several labelled commands at once; each output is kept by itself, and all are searched together.

Each command needs the leave that `run_command` would need, and one that gets none is told so beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import msgspec

from ..model.failures import Failure, StorageFailed
from ..model.index import Results, Source
from ..providers.base import ToolSpec
from ..system.redact import redacted
from ..system.sandbox import Sandbox
from . import findings
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, number, text
from .findings import INLINE
from .run_command import TITLE, command_line
from .runner import Ended, Job, Runner, Show, time_limit
from .search_context import spelled
from .transcript import Transcript

MAX_COMMANDS = 20
MAX_AT_ONCE = 8
DEFAULT_AT_ONCE = 4
MAX_LABEL = 60
"""Characters of a label, which names a source: a title, no text."""

MAX_EACH = 2 * 1024 * 1024
"""Bytes of one command's output that are kept: a quarter of a single command's, as there are several."""

SHARED_TOKENS = 600
"""Of the ends of all outputs, where nothing was looked for."""

LEAST_SHARE = 40
"""Tokens of one of them: a line or two."""

END_LINES = 12
"""And lines, however short: what a program says last is seldom more."""


class RunBatch:
    """`inline` are the bytes of output that are sent whole."""

    kind: Kind = "execute"
    alone = True
    spec = ToolSpec(
        "run_batch",
        "Run shell commands side by side, as run_command would. Each output is kept under its label; queries search "
        "them all.",
        {
            "type": "object",
            "properties": {
                "commands": {
                    "type": "array",
                    "maxItems": MAX_COMMANDS,
                    "items": {
                        "type": "object",
                        "properties": {"label": {"type": "string"}, "command": {"type": "string"}},
                        "required": ["label", "command"],
                    },
                },
                "queries": {"type": "array", "items": {"type": "string"}},
                "concurrency": {
                    "type": "integer",
                    "description": f"1 to {MAX_AT_ONCE}, default {DEFAULT_AT_ONCE}.",
                },
                "timeout_ms": {"type": "integer", "description": "For all of them."},
            },
            "required": ["commands"],
        },
    )

    def __init__(self, runner: Runner, inline: int = INLINE) -> None:
        self._runner = runner
        self._inline = inline

    def title(self, input: dict[str, Any]) -> str:
        listed = input.get("commands")
        items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        labels = ", ".join(" ".join(str(item.get("label", "")).split()) for item in items)
        shown = f"{labels[: TITLE - 1]}…" if len(labels) > TITLE else labels
        return f"Run {len(items)} commands: {shown}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        commands = _commands(input)
        at_once = number(input, "concurrency", DEFAULT_AT_ONCE)
        if at_once > MAX_AT_ONCE:
            raise Wrong(f"`concurrency` must be at most {MAX_AT_ONCE}.")
        plan = _Plan(commands, at_once, time_limit(input), findings.wanted(input))
        box = await self._runner.box(hands)
        shown = "\n".join(f"# {label}\n{command}" for label, command in commands)
        need = Need("run", shown, folder=hands.workspace.resolve(".").shown, parts=commands)
        return Ready(need, partial(self._run, plan, box, hands))

    async def _run(self, plan: _Plan, box: Sandbox | None, hands: Hands) -> Outcome:
        refused = dict(hands.refused)
        done: dict[int, _Done] = {}
        limit = anyio.CapacityLimiter(plan.at_once)
        until = anyio.current_time() + plan.seconds
        stage = _Stage(hands)
        failures: list[StorageFailed] = []

        async def run(at: int, label: str, command: str) -> None:
            async with limit:
                left = until - anyio.current_time()
                if left <= 0:
                    refused[at] = "Not run: the time was over."
                    return
                job = Job([self._runner.shell(), "-c", command], left, part=str(at))
                transcript = Transcript(MAX_EACH)
                try:
                    ended = await self._runner.run(job, box, transcript, hands, stage.of(label))
                    done[at] = await self._done(label, ended, transcript, hands)
                except StorageFailed as failure:
                    failures.append(failure)
                except (Wrong, Failure) as wrong:
                    refused[at] = str(wrong)

        async with anyio.create_task_group() as tasks:
            for at, (label, command) in enumerate(plan.commands):
                if at not in refused:
                    tasks.start_soon(run, at, label, command)
        if failures:
            raise failures[0]
        return await self._outcome(plan, done, refused, hands)

    async def _done(self, label: str, ended: Ended, transcript: Transcript, hands: Hands) -> _Done:
        whole = redacted(transcript.whole())
        source = await findings.kept(whole, label, hands) if whole else None
        # Of the whole only its edges are held on to while the others run.
        return _Done(ended, transcript.size, redacted(transcript.short()), source)

    async def _outcome(
        self, plan: _Plan, done: Mapping[int, _Done], refused: Mapping[int, str], hands: Hands
    ) -> Outcome:
        sources = [one.source for one in done.values() if one.source]
        found = await findings.searched(plan.queries, sources, hands)
        share = self._share(plan, done, found)
        parts = [
            done[at].shown(label, share) if at in done else f"## {label}: {refused[at]}"
            for at, (label, _) in enumerate(plan.commands)
        ]
        if sources and share is not None:
            parts.append("[search_context finds words in what is kept, get_output shows lines of it]")
        parts += [spelled(plan.queries, found)] if found else []
        parts += [
            f"[{note}]"
            for note in dict.fromkeys(note for one in done.values() for note in one.ended.notes[1:])
        ]
        shown = "\n".join(parts)
        kept_all = len(sources) == sum(bool(one.size) for one in done.values())
        return Outcome(
            shown,
            failed=any(one.ended.failed for one in done.values()) or not done,
            whole=None
            if kept_all
            else "\n".join(one.shown(plan.label(at), None) for at, one in done.items()),
            shown=True,
            measured=findings.measured(sources, found, shown, hands) if share is not None else None,
        )

    def _share(self, plan: _Plan, done: Mapping[int, _Done], found: Sequence[Results]) -> int | None:
        """The tokens of its end that stand for each output; None when all of them are sent."""
        if sum(one.size for one in done.values()) <= self._inline:
            return None
        if any(results.hits for results in found):
            return 0
        return max(LEAST_SHARE, SHARED_TOKENS // len(plan.commands))


class _Plan(msgspec.Struct, frozen=True):
    commands: tuple[tuple[str, str], ...]
    at_once: int
    seconds: float
    queries: list[str]

    def label(self, at: int) -> str:
        return self.commands[at][0]


class _Done(msgspec.Struct, frozen=True):
    """A command that ended; `text` is its output, or the beginning and end of a long one."""

    ended: Ended
    size: int
    text: str
    source: Source | None

    def shown(self, label: str, share: int | None) -> str:
        """How it ended, where its output is, and `share` tokens of that, or all."""
        where = f", {self.source.lines} lines kept as {self.source.id}" if self.source else ""
        head = f"## {label}: {self.ended.notes[0]}; {self.size} bytes{where}"
        text = (self.text if share is None else _end_of(self.text, share)).rstrip("\n")
        return f"{head}\n{text}" if text else head


class _Stage:
    """Where the outputs of several commands are watched: each piece stands under the label of its command."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._last: str | None = None

    def of(self, label: str) -> Show:
        async def show(text: str) -> None:
            head = f"── {label} ──\n" if label != self._last else ""
            self._last = label
            await self._hands.show(head + text)

        return show


def _commands(input: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    listed = input.get("commands")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_COMMANDS:
        raise Wrong(
            f"`commands` must be a list of 1 to {MAX_COMMANDS} commands, each with `label` and `command`."
        )
    if not all(isinstance(item, dict) for item in listed):
        raise Wrong("Each of `commands` must have a `label` and a `command`.")
    commands = tuple((_label(item), command_line(item, "command")) for item in listed)
    labels = [label for label, _ in commands]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise Wrong(f"`label`: {twice!r} stands for two commands. Give each a label of its own.")
    return commands


def _label(item: dict[str, Any]) -> str:
    label = " ".join(text(item, "label").split())
    if not label or len(label) > MAX_LABEL or not label.isprintable():
        raise Wrong(f"`label` must be a line of 1 to {MAX_LABEL} characters.")
    return label


def _end_of(text: str, tokens: int) -> str:
    """The last lines within so many tokens, with a mark for what is above."""
    room = tokens * findings.BYTES_A_TOKEN
    if len(text.encode()) <= room and text.count("\n") <= END_LINES:
        return text
    kept: list[str] = []
    for line in reversed(text.rstrip("\n").split("\n")[-END_LINES:]):
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return "\n".join(["…", *kept]) if kept else ""
