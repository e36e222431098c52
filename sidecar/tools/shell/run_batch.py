"""`run_batch`: run several labelled commands at once; each output is stored by itself, and all are searched together.

Each command needs the permission that `run_command` would need; a denied one is reported beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import msgspec

from ...model.failures import Failure, StorageFailed
from ...model.index import Results, Source
from ...providers.base import ToolSpec
from ...system.redact import redact_text
from ...system.sandbox import Sandbox
from ...text.token_estimate import BYTES_PER_TOKEN
from ..base import Intent, PlannedCall, ShowOutput, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome
from ..kept_output import findings
from ..kept_output.findings import INLINE_BYTES
from ..kept_output.search_context import render_results
from .run_command import MAX_TITLE, command_line
from .runner import ExitStatus, ProgramRun, Runner, time_limit
from .transcript import Transcript

MAX_COMMANDS = 20
MAX_PARALLEL = 8
DEFAULT_PARALLEL = 4
MAX_LABEL = 60
"""Characters of a label, which names a source: a title, not a text."""

MAX_OUTPUT_BYTES = 2 * 1024 * 1024
"""Bytes of one command's output that are stored: a quarter of a single command's, as there are several."""

TAIL_TOKENS = 600
"""Tokens of the ends of all outputs, when there are no queries."""

MIN_TAIL_TOKENS = 40
"""Tokens of one of them: a line or two."""

TAIL_LINES = 12
"""Lines of one of them, however short: the last message of a program is seldom longer."""


class RunBatch:
    """`inline` is the number of bytes of output that are sent in full."""

    kind: ToolKind = "execute"
    runs_alone = True
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
                    "description": f"1 to {MAX_PARALLEL}, default {DEFAULT_PARALLEL}.",
                },
                "timeout_ms": {"type": "integer", "description": "For all of them."},
            },
            "required": ["commands"],
        },
    )

    def __init__(self, runner: Runner, inline: int = INLINE_BYTES) -> None:
        self._runner = runner
        self._inline = inline

    def title(self, input: ToolInput) -> str:
        listed = input.get("commands")
        items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        labels = ", ".join(" ".join(str(item.get("label", "")).split()) for item in items)
        shown = f"{labels[: MAX_TITLE - 1]}…" if len(labels) > MAX_TITLE else labels
        return f"Run {len(items)} commands: {shown}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        commands = _commands(input)
        at_once = input.number("concurrency", DEFAULT_PARALLEL)
        if at_once > MAX_PARALLEL:
            raise ToolError(f"`concurrency` must be at most {MAX_PARALLEL}.")
        plan = _Batch(commands, at_once, time_limit(input), findings.output_queries(input))
        box = await self._runner.box(context)
        shown = "\n".join(f"# {label}\n{command}" for label, command in commands)
        confinement = await self._runner.confinement(box, context)
        here = context.workspace.resolve(".").shown
        intent = Intent("run", shown, folder=here, parts=commands, sandbox=confinement)
        return PlannedCall(intent, partial(self._run, plan, box, context))

    async def _run(self, plan: _Batch, box: Sandbox | None, context: ToolContext) -> ToolOutcome:
        refused = dict(context.refused)
        done: dict[int, _FinishedCommand] = {}
        limit = anyio.CapacityLimiter(plan.at_once)
        until = anyio.current_time() + plan.seconds
        stage = _LabelledOutput(context)
        failures: list[StorageFailed] = []

        async def run(at: int, label: str, command: str) -> None:
            async with limit:
                left = until - anyio.current_time()
                if left <= 0:
                    refused[at] = "Not run: the time was over."
                    return
                job = ProgramRun([self._runner.shell(), "-c", command], left, part=str(at))
                transcript = Transcript(MAX_OUTPUT_BYTES)
                try:
                    ended = await self._runner.run(job, box, transcript, context, stage.of(label))
                    done[at] = await self._finish_command(label, ended, transcript, context)
                except StorageFailed as failure:
                    failures.append(failure)
                except (ToolError, Failure) as wrong:
                    refused[at] = str(wrong)

        async with anyio.create_task_group() as tasks:
            for at, (label, command) in enumerate(plan.commands):
                if at not in refused:
                    tasks.start_soon(run, at, label, command)
        if failures:
            raise failures[0]
        return await self._outcome(plan, done, refused, context)

    async def _finish_command(
        self, label: str, ended: ExitStatus, transcript: Transcript, context: ToolContext
    ) -> _FinishedCommand:
        whole = redact_text(transcript.whole())
        source = await findings.keep_output(whole, label, context) if whole else None
        # Only the beginning and end of an output stay in memory while the others run.
        return _FinishedCommand(ended, transcript.size, redact_text(transcript.short()), source)

    async def _outcome(
        self,
        plan: _Batch,
        done: Mapping[int, _FinishedCommand],
        refused: Mapping[int, str],
        context: ToolContext,
    ) -> ToolOutcome:
        sources = [one.source for one in done.values() if one.source]
        found = await findings.search_sources(plan.queries, sources, context)
        share = self._tail_share(plan, done, found)
        parts = [
            done[at].report(label, share) if at in done else f"## {label}: {refused[at]}"
            for at, (label, _) in enumerate(plan.commands)
        ]
        if sources and share is not None:
            parts.append("[search_context finds words in what is kept, get_output shows lines of it]")
        parts += [render_results(plan.queries, found)] if found else []
        parts += [
            f"[{note}]"
            for note in dict.fromkeys(note for one in done.values() for note in one.ended.notes[1:])
        ]
        shown = "\n".join(parts)
        kept_all = len(sources) == sum(bool(one.size) for one in done.values())
        return ToolOutcome(
            shown,
            failed=any(one.ended.failed for one in done.values()) or not done,
            whole=None
            if kept_all
            else "\n".join(one.report(plan.label(at), None) for at, one in done.items()),
            shown=True,
            measured=findings.measure_savings(sources, found, shown, context) if share is not None else None,
        )

    def _tail_share(
        self, plan: _Batch, done: Mapping[int, _FinishedCommand], found: Sequence[Results]
    ) -> int | None:
        """Return the tokens of the end that is shown of each output; None when all are sent in full."""
        if sum(one.size for one in done.values()) <= self._inline:
            return None
        if any(results.hits for results in found):
            return 0
        return max(MIN_TAIL_TOKENS, TAIL_TOKENS // len(plan.commands))


class _Batch(msgspec.Struct, frozen=True):
    commands: tuple[tuple[str, str], ...]
    at_once: int
    seconds: float
    queries: list[str]

    def label(self, at: int) -> str:
        return self.commands[at][0]


class _FinishedCommand(msgspec.Struct, frozen=True):
    """A command that ended; `text` is its output, or the beginning and end of a long one."""

    ended: ExitStatus
    size: int
    text: str
    source: Source | None

    def report(self, label: str, share: int | None) -> str:
        """Return how it ended, where its output is, and `share` tokens of that, or all."""
        where = f", {self.source.lines} lines kept as {self.source.id}" if self.source else ""
        head = f"## {label}: {self.ended.notes[0]}; {self.size} bytes{where}"
        text = (self.text if share is None else _tail(self.text, share)).rstrip("\n")
        return f"{head}\n{text}" if text else head


class _LabelledOutput:
    """The live output of several commands: each piece is under the label of its command."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._last: str | None = None

    def of(self, label: str) -> ShowOutput:
        async def show(text: str) -> None:
            head = f"── {label} ──\n" if label != self._last else ""
            self._last = label
            await self._context.show(head + text)

        return show


def _commands(input: ToolInput) -> tuple[tuple[str, str], ...]:
    listed = input.get("commands")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_COMMANDS:
        raise ToolError(
            f"`commands` must be a list of 1 to {MAX_COMMANDS} commands, each with `label` and `command`."
        )
    if not all(isinstance(item, dict) for item in listed):
        raise ToolError("Each of `commands` must have a `label` and a `command`.")
    items = [ToolInput(item) for item in listed]
    commands = tuple((_label(item), command_line(item, "command")) for item in items)
    labels = [label for label, _ in commands]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ToolError(f"`label`: {twice!r} names two commands. Give each its own label.")
    return commands


def _label(item: ToolInput) -> str:
    label = " ".join(item.text("label").split())
    if not label or len(label) > MAX_LABEL or not label.isprintable():
        raise ToolError(f"`label` must be a line of 1 to {MAX_LABEL} characters.")
    return label


def _tail(text: str, tokens: int) -> str:
    """Return the last lines within so many tokens, with a mark for what is omitted."""
    space = tokens * BYTES_PER_TOKEN
    if len(text.encode()) <= space and text.count("\n") <= TAIL_LINES:
        return text
    kept: list[str] = []
    for line in reversed(text.rstrip("\n").split("\n")[-TAIL_LINES:]):
        space -= len(line.encode()) + 1
        if space < 0:
            break
        kept.insert(0, line)
    return "\n".join(["…", *kept]) if kept else ""
