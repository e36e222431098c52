"""A long command draws its progress on a terminal, gives the line back, and draws nothing into a file."""

from __future__ import annotations

import io

import pytest
from sidecar_protocol.messages import Status

from sidecar.cli.terminal.progress_line import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(done: int, total: int | None) -> Status:
    more = {} if total is None else {"total": total}
    return Status(type="progress", data={"operationId": "1", "kind": "import", "done": done, **more})


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [
        (0, 200, "[                        ]   0 %"),
        (50, 200, "[======                  ]  25 %"),
        (199, 200, "[======================= ]  99 %"),
        (200, 200, "[========================] 100 %"),
        (7, None, "7"),
    ],
)
def test_the_share_is_drawn_over_the_line_before(done: int, total: int | None, shown: str) -> None:
    terminal = Terminal()
    ProgressLine("importing", terminal).on_status(progress(done, total))
    assert terminal.getvalue() == f"\r  importing {shown}"


def test_the_chats_so_far_are_counted() -> None:
    terminal, status = Terminal(), progress(50, 200)
    status.data["chats"] = 1234
    ProgressLine("importing", terminal).on_status(status)
    assert terminal.getvalue().endswith("]  25 %, 1,234 chats")


def test_the_line_is_given_back_once() -> None:
    terminal = Terminal()
    line = ProgressLine("importing", terminal)
    line.on_status(progress(1, 2))
    line.clear()
    line.clear()
    assert terminal.getvalue().count("\x1b[K") == 1


def test_nothing_is_drawn_into_a_file_or_for_another_status() -> None:
    file, terminal = io.StringIO(), Terminal()
    ProgressLine("importing", file).on_status(progress(1, 2))
    ProgressLine("importing", terminal).on_status(Status(type="storage", data={"state": "ready"}))
    assert (file.getvalue(), terminal.getvalue()) == ("", "")
