"""What there is to test: the guarantees by name, and the files of the suite that show each. Knows no test."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_PACKED = Path(__file__).parent / "suite"

SUITE = _PACKED if _PACKED.is_dir() else Path(__file__).parents[3]
"""The folder that has `tests` and `protocol`: packed into the wheel, or the repository itself."""

TRANSCRIPTS = SUITE / "protocol" / "transcripts"


class Guarantee(NamedTuple):
    """`files` are below the folder of the frontend's tests."""

    name: str
    promise: str
    files: tuple[str, ...]


class Frontend(NamedTuple):
    """A dialect, and where its tests are. `framing` is how messages are separated."""

    name: str
    folder: str
    command: str
    """The variable with the command of the program under test."""
    guarantees: tuple[Guarantee, ...]
    framing: str = "lines"


_NATIVE = (
    Guarantee("connection", "Each request gets one answer, whatever is sent.", ("test_connection.py",)),
    Guarantee(
        "input", "Wrong parameters are refused by name, and change nothing.", ("test_checked_input.py",)
    ),
    Guarantee("identity", "A chat is found again by its name, whatever its spelling.", ("test_identity.py",)),
    Guarantee("open", "An open chat is resumed or created, and its events follow.", ("test_open.py",)),
    Guarantee("turns", "Events are dense, in order, and end the turn.", ("test_turns.py",)),
    Guarantee("prompts", "A prompt runs once, also when it is sent again.", ("test_prompts.py",)),
    Guarantee("cancel", "A cancelled turn ends, and the chat continues.", ("test_cancel.py",)),
    Guarantee("events", "Stored events can be read after any cursor.", ("test_events_read.py",)),
    Guarantee("history", "The history says what the events said.", ("test_history.py", "test_branches.py")),
    Guarantee("durability", "What was sent is stored, also after SIGKILL.", ("test_durability.py",)),
    Guarantee("recovery", "A turn that a crash ended is closed and resumes.", ("test_recovery.py",)),
    Guarantee("reader", "A slow reader loses nothing and delays nobody.", ("test_slow_reader.py",)),
    Guarantee("processes", "Several processes share a database safely.", ("test_processes.py",)),
    Guarantee("lifecycle", "The process ends with its client, within two seconds.", ("test_lifecycle.py",)),
    Guarantee(
        "chats",
        "Chats are listed, found, titled, configured.",
        (
            "test_listing.py",
            "test_chat_search.py",
            "test_titles.py",
            "test_configure.py",
        ),
    ),
    Guarantee("paths", "Files are replaced only when asked, its own never.", ("test_named_paths.py",)),
    Guarantee("media", "What is no image or audio is refused.", ("test_media.py",)),
    Guarantee("long", "Long work blocks nobody and survives a crash.", ("test_long_operations.py",)),
    Guarantee("delete", "A deleted chat is gone from the files.", ("test_delete.py",)),
)

_ACP = (
    Guarantee(
        "acp", "Prompts, cancels, crashes and several editors keep the guarantees.", ("test_guarantees.py",)
    ),
    Guarantee("sessions", "Sessions are created, listed, loaded and resumed.", ("test_sessions.py",)),
)

FRONTENDS = {
    one.name: one
    for one in (
        Frontend("lines", "tests/blackbox/guarantees", "SIDECAR_TEST_COMMAND", _NATIVE),
        Frontend("headers", "tests/blackbox/guarantees", "SIDECAR_TEST_COMMAND", _NATIVE, "headers"),
        Frontend("acp", "tests/blackbox/editors", "SIDECAR_TEST_ACP_COMMAND", _ACP),
    )
}
"""`sidecar mcp` has none: it offers tools to an agent, and carries no chat, turn or event that could be tested."""
