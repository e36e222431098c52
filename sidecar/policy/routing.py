"""Which calls are redirected to a better tool: large reads, raw fetches and noisy commands, which would flood the
context window.

Pure: file sizes and tool names are parameters. A redirect does not change the call: it answers it once with a better
tool. The same call runs when it is repeated, so nothing becomes impossible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

import msgspec

from ..model import JsonObject
from ..settings.values import RoutingSettings
from .commands import SimpleCommand, parse_command
from .programs import program_name
from .tables import word_set

SEARCH = "search_context"
"""The tool that searches the index; without it nothing is redirected."""


class Redirect(msgspec.Struct, frozen=True):
    """The better way: the code of the rule, the tool, and the message for the model."""

    code: str
    instead: str
    message: str


SizeOf = Callable[[str], int | None]
"""Returns the size of a file of the project; None when it is unknown."""

_REPEAT_HINT = "Make the same call again if you need it as it is."
_NOISY: dict[str, str] = {
    **dict.fromkeys(
        word_set("pytest py.test tox nox jest vitest mocha rspec phpunit ctest tsc webpack vite"), ""
    ),
    **dict.fromkeys(word_set("make gmake ninja gradle gradlew mvn mvnw bazel msbuild xcodebuild"), ""),
    **dict.fromkeys(word_set("npm pnpm yarn bun"), "test t run install i ci add build"),
    **dict.fromkeys(
        word_set("pip pip3 uv poetry pipenv conda gem bundle composer"), "install sync add update build"
    ),
    **dict.fromkeys(word_set("apt apt-get dnf yum brew apk pacman"), "install update upgrade -S"),
    "cargo": "test build check clippy bench install",
    "go": "test build vet install get",
    "dotnet": "test build restore",
    "mix": "test compile deps.get",
    "docker": "build logs compose",
    "terraform": "plan apply init",
    "cmake": "--build",
}
"""Programs with much output, and the words that cause it; an empty set means always."""

_BOUNDING = word_set("head tail wc grep egrep fgrep rg ag awk jq cut uniq less more sed column")
"""A line with one of these already limits its output."""

_QUIET = re.compile(r"-(q|qq|s|h)|--(quiet|silent|help|version|collect-only|dry-run)")
_SENDS = re.compile(
    r"-(X|d|F|T|o|O|I|i?LO|sO)\b|--(request|data\S*|form|upload-file|output\S*|remote-name|head)"
)
_LIMIT = re.compile(r"-n\d*|-\d+|--max-count(=\d+)?")


def redirect(
    tool: str, input: JsonObject, size_of: SizeOf, routing: RoutingSettings, tools: Collection[str]
) -> Redirect | None:
    """Return a redirect for a call, if there is a better way among these tools."""
    if SEARCH not in tools:
        return None
    found: Redirect | None = None
    if tool == "read_file" and routing.big_reads == "on":
        found = _read(input, size_of, routing)
    elif tool == "run_command" and isinstance(command := input.get("command"), str):
        found = _command(command, size_of, routing)
    return found if found and found.instead in tools else None


def _read(input: JsonObject, size_of: SizeOf, routing: RoutingSettings) -> Redirect | None:
    path = input.get("path")
    ranged = input.get("start_line") is not None or input.get("end_line") is not None
    return None if ranged or not isinstance(path, str) else _big_file(path, size_of, routing)


def _big_file(path: str, size_of: SizeOf, routing: RoutingSettings) -> Redirect | None:
    size = size_of(path)
    if size is None or size <= routing.big_reads_bytes:
        return None
    return Redirect(
        "route_big_read",
        "index_path",
        f"{path} has {size} bytes, which would fill your window. Use index_path on it and then search_context for"
        f" what you need, or read_file with start_line and end_line. {_REPEAT_HINT}",
    )


def _command(line: str, size_of: SizeOf, routing: RoutingSettings) -> Redirect | None:
    """Return the first redirect for a command of the line; None for an unclear line or one that limits its output."""
    commands = parse_command(line).commands
    if not commands or any(program_name(one.argv) in _BOUNDING or one.written for one in commands):
        return None
    for simple in commands:
        found = _simple(simple, size_of, routing)
        if found:
            return found
    return None


def _simple(simple: SimpleCommand, size_of: SizeOf, routing: RoutingSettings) -> Redirect | None:
    argv = _run_module(simple.argv)
    name, words = program_name(argv), argv[1:]
    if name in ("curl", "wget") and routing.fetches == "on":
        return _fetch(words)
    if name in ("cat", "bat", "nl") and routing.big_reads == "on":
        return next(
            filter(None, (_big_file(word, size_of, routing) for word in words if word[:1] != "-")), None
        )
    if routing.long_listings == "on" and (listed := _listing(name, words, routing)):
        return listed
    return _noise(name, words, routing) if routing.noisy_commands == "on" else None


def _run_module(argv: Sequence[str]) -> Sequence[str]:
    """`python -m pytest` is pytest."""
    if len(argv) > 2 and program_name(argv).startswith("python") and argv[1] == "-m":
        return argv[2:]
    return argv


def _fetch(words: Sequence[str]) -> Redirect | None:
    addresses = [word for word in words if re.match("https?://", word)]
    if len(addresses) != 1 or any(map(_SENDS.match, words)):
        return None
    return Redirect(
        "route_fetch",
        "fetch_url",
        f"Use fetch_url for {addresses[0][:200]}: it keeps the page out of your window and answers by what you ask of"
        f" it. {_REPEAT_HINT}",
    )


def _listing(name: str, words: Sequence[str], routing: RoutingSettings) -> Redirect | None:
    if name == "find" and words[:1] and words[0] in ("/", "~", "/home", "/usr"):
        why, instead = f"find {words[0]} lists far more than the project", "glob"
    elif name == "ls" and any(re.fullmatch(r"-\w*R\w*", word) for word in words):
        why, instead = "ls -R lists every file", "glob"
    elif name == "git" and words[:1] == ("log",) and _is_long(words[1:], routing.long_listings_max):
        why, instead = "git log without a limit prints the whole history", "run_batch"
    elif name == "journalctl" and not any(map(_LIMIT.fullmatch, words)):
        why, instead = "journalctl without a limit prints the whole log", "run_batch"
    else:
        return None
    return Redirect("route_listing", instead, f"Use {instead}: {why}. {_REPEAT_HINT}")


def _is_long(words: Sequence[str], most: int) -> bool:
    limits = [word for word in words if _LIMIT.fullmatch(word)]
    numbers = [int(found) for word in words for found in re.findall(r"\d+", word) if word in limits]
    if "-n" in limits:
        numbers += [int(word) for word in words if word.isdigit()]
    return not numbers or min(numbers) > most


def _noise(name: str, words: Sequence[str], routing: RoutingSettings) -> Redirect | None:
    which = "" if name in routing.noisy_programs else _NOISY.get(name)
    if which is None or any(map(_QUIET.fullmatch, words)):
        return None
    if which and not (words and words[0] in which.split()):
        return None
    return Redirect(
        "route_noisy",
        "run_batch",
        f"Use run_batch for {name}: it prints much, run_batch keeps that out of your window, and `queries` answer what"
        f" you want to know of it. {_REPEAT_HINT}",
    )
