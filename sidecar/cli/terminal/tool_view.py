"""Render a tool call, a plan and a change of a file. Knows neither events nor the state of the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text
from sidecar_protocol.messages import FileChange, Item

from .safe_text import Tail, one_line, visible_text

OUTPUT_LINES = 8
"""Lines of a command's output that stay on the screen: the end says how it went."""

PLAN_TOOL = "update_plan"
"""Its effect is shown as the plan; a line for each call of it would only repeat that."""

INDENT = "  "

_MARKS = {
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "denied": ("✗ denied", "yellow"),
    "cancelled": ("– cancelled", "yellow"),
    "interrupted": ("– interrupted", "yellow"),
}

_STEPS = {"completed": ("✓", "green"), "in_progress": ("▸", "bold yellow")}


class Sentence:
    """One line of text that is wrapped at words, its further rows indented; elsewhere than on a terminal whole."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if not console.is_terminal or self._text.cell_len <= width:
            yield self._text
            return
        first = self._text.wrap(console, width)[0]
        rest = self._text[len(first) :]
        rest = rest[len(rest) - len(rest.plain.lstrip(" ")) :]
        yield first
        for row in rest.wrap(console, max(1, width - len(INDENT))):
            yield Text(INDENT).append_text(row)


def title_of(item: Item) -> str:
    return one_line(item.title or item.name or item.type)


def call_lines(item: Item, output: Tail | None = None, why: str | None = None) -> list[RenderableType]:
    """Return a finished call: its title, how it ended, and the end of its output."""
    mark, colour = _MARKS.get(item.status, ("…", "dim"))
    line = Text.assemble(("● ", colour), title_of(item), " ", (mark, colour))
    if item.exit_code:
        line.append(f" exit code {item.exit_code}", colour)
    elif item.exit_code == 0:
        line.append(" exit code 0", "dim")
    if item.changes and item.status != "denied":
        line.append_text(_counts(item.changes))
    words = why or _failure(item)
    reason = [Sentence(Text(INDENT + words, "dim"))] if words else []
    return [Sentence(line), *output_lines(output), *reason]


def output_lines(output: Tail | None) -> Iterator[Text]:
    """Return the end of the output of a command, and how much came before."""
    if output is None:
        return
    if output.above:
        yield Text(f"{INDENT}… {output.above} line{'s' if output.above > 1 else ''} above", "dim italic")
    for line in output.lines:
        yield Text(INDENT + line, "dim", no_wrap=True, overflow="ellipsis")


def output_of(item: Item) -> Tail | None:
    """Return the output of a command in the history."""
    if item.kind != "execute" or item.status == "denied" or not item.output:
        return None
    text = str(item.output.get("text") or "")
    printed, _, last = text.rpartition("\n")
    tail = Tail(OUTPUT_LINES)
    # The last line is the tool's text for the exit code, which is beside the title already.
    tail.add(printed if last.startswith("[exit code ") else text)
    return tail


def plan_lines(item: Item) -> list[Text]:
    """Return a plan as a checklist."""
    return [Text("Plan", "bold"), *(_step(entry) for entry in item.entries or [])]


def diff_lines(change: FileChange) -> list[Text]:
    """Return a change of a file in colours, each line of the diff as it is."""
    if change.unified_diff is None:
        what = "binary file" if change.binary else "too large to show"
        return [Text(f"{change.kind} {one_line(change.path)} ({what})", "bold")]
    lines = visible_text(change.unified_diff).removesuffix("\n").split("\n")
    shown = list(_colour_diff(lines))
    if change.truncated:
        shown.append(Text("… the diff goes on: it is too long to be sent whole", "yellow"))
    return shown


def _colour_diff(lines: Sequence[str]) -> Iterator[Text]:
    """A line that starts with `---` within a hunk was removed; before the first hunk it is a header."""
    within = False
    for line in lines:
        within = within or line.startswith("@@")
        if not within:
            yield Text(line, "bold")
        elif line.startswith("@@"):
            yield Text(line, "cyan")
        else:
            yield Text(line, {"+": "green", "-": "red"}.get(line[:1], ""))


def _counts(changes: Sequence[FileChange]) -> Text:
    added, removed = sum(each.added for each in changes), sum(each.removed for each in changes)
    text = Text.assemble((f" +{added}", "green"), (f" -{removed}", "red"))
    return text.append(f" in {len(changes)} files", "dim") if len(changes) > 1 else text


def _failure(item: Item) -> str | None:
    """Return the error of a call that failed other than by an exit code."""
    if item.status != "failed" or item.exit_code is not None or not item.output:
        return None
    lines = str(item.output.get("text") or "").strip().split("\n")
    return one_line(lines[-1 if item.kind == "execute" else 0], 200) or None


def _step(entry: dict[str, object]) -> Text:
    mark, style = _STEPS.get(str(entry.get("status")), ("☐", ""))
    words = one_line(str(entry.get("content") or ""))
    dimmed = "dim" if style == "green" else style
    return Text.assemble(INDENT, (f"{mark} ", style), (words, dimmed))
