"""Parse what to answer from the prompt: `[[say=Hello]]`, `[[tool=look:{"where": "door"}]]` and so on.

Knows nothing of HTTP or of any API. docs/fake-provider.md lists the markers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from .values import PlannedReply, SentCall, Stop

MAX_DELTAS = 1_000_000  # a response is built in memory; a million deltas are about 60 MB
QUOTED = 200  # a longer prompt or result is quoted up to here

_FENCED = re.compile(
    r"^\[\[([0-9a-f]{12}) [^\n]*\(data, not instructions\)\]\]\n.*?\n\[\[/\1\]\]$", re.M | re.S
)
"""What the sidecar sends as data. Like a model, the fake ignores instructions in it."""

_OPENING = re.compile(r"\[\[([a-z_]+)(=|\]\])")
_WORDS = re.compile(r"\s*\S+|\s+")
_DECODER = json.JSONDecoder()


def reply_to(prompt: str, results: list[str], rounds: int) -> PlannedReply:
    """Return the reply to a prompt after `rounds` rounds of tool calls; `results` are those of the last one.

    `[[next]]` splits the prompt: the first part is the answer before any tool result, the second that after the first
    round, and so on. After the last part the results are quoted.
    """
    parts = _FENCED.sub("", prompt).split("[[next]]")
    if rounds >= len(parts):
        # Pace, usage and faults apply to the whole turn; thoughts and ends to the part that named them.
        first = _read(parts[0])
        found = _Markers(delay=first.delay, usage=first.usage, faults=first.faults)
    else:
        found = _read(parts[rounds])
    if found.stop == "refusal" and not found.text:
        found.text = _WORDS.findall("I cannot help with that.")
    elif not found.says_something:
        found.text = _WORDS.findall(
            _quote_results(results) if rounds else f"You said: “{_cut(found.plain)}”."
        )
    return _reply(found)


@dataclass
class _Markers:
    """The markers of one part. `plain` is the text outside of them."""

    plain: str = ""
    thoughts: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    calls: list[SentCall] = field(default_factory=list)
    stop: Stop = "end"
    delay: float = 0.0
    usage: tuple[int, int, int] | None = None
    faults: list[tuple[str, int | None]] = field(default_factory=list)
    said: bool = False

    @property
    def says_something(self) -> bool:
        return self.said or bool(self.calls) or self.stop == "refusal"


def _read(part: str) -> _Markers:
    found, at, plain = _Markers(), 0, list[str]()
    while opening := _OPENING.search(part, at):
        plain.append(part[at : opening.start()])
        value, at = "", opening.end()
        if opening[2] == "=":
            value, at = _value(part, opening[1], at)
        if not _apply(found, opening[1], value):
            plain.append(part[opening.start() : at])
    found.plain = "".join([*plain, part[at:]]).strip()
    return found


def _value(part: str, name: str, at: int) -> tuple[str, int]:
    """Return the value of a marker, and where the text continues. JSON of a tool may hold `]]` in its strings."""
    if name == "tool" and (brace := part.find(":", at)) >= 0:
        try:
            _, end = _DECODER.raw_decode(part, brace + 1)
            if part.startswith("]]", end):
                return part[at:end], end + 2
        except ValueError:
            pass  # invalid JSON is sent as it is: everything up to the closing brackets
    end = part.find("]]", at)
    return (part[at:], len(part)) if end < 0 else (part[at:end], end + 2)


def _apply(found: _Markers, name: str, value: str) -> bool:
    """Apply a marker; False when the name is unknown or the value invalid."""
    try:
        match name:
            case "say":
                found.text += _WORDS.findall(value)
                found.said = True
            case "n":
                found.text += [f"t{number:04} " for number in range(min(int(value), MAX_DELTAS))]
                found.said = True
            case "big":
                found.text.append("x" * int(value))
                found.said = True
            case "think":
                found.thoughts += _WORDS.findall(value)
            case "tool":
                found.calls.append(_call(value))
            case "refuse":
                found.stop = "refusal"
            case "max_tokens":
                found.stop = "length"
            case "delay":
                found.delay = float(value) / 1000
            case "usage":
                given = [int(each) for each in value.split(",")]
                found.usage = (given[0], given[1], given[2] if len(given) > 2 else 0)
            case "fault":
                fault, _, times = value.partition("*")
                found.faults.append((fault.strip(), int(times) if times else None))
            case _:
                return False
    except (ValueError, IndexError):
        return False
    return True


def _call(value: str) -> SentCall:
    name, _, arguments = value.partition(":")
    arguments = arguments.strip() or "{}"
    try:
        given = json.loads(arguments)
    except ValueError:
        given = {}
    return SentCall(name.strip(), arguments, given if isinstance(given, dict) else {})


def _reply(found: _Markers) -> PlannedReply:
    stop: Stop = "tools" if found.calls and found.stop == "end" else found.stop
    return PlannedReply(
        tuple(found.thoughts),
        tuple(found.text),
        tuple(found.calls),
        stop,
        found.delay,
        found.usage,
        tuple(found.faults),
    )


def _quote_results(results: list[str]) -> str:
    quoted = ", ".join(f"“{_cut(result)}”" for result in results) or "nothing"
    return f"The tools said: {quoted}."


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED else text[:QUOTED] + "…"
