"""What becomes of the files that are attached to messages of other programs."""

from __future__ import annotations

import pytest

from sidecar.foreign.building import ChatBuilder
from sidecar.foreign.records import Notes
from tests.support.pictures import png

TEXT = b"Twelve feet.\n"


@pytest.mark.parametrize(
    ("data", "mime_type", "name", "becomes"),
    [
        (png(), "image/png", None, "image"),
        (png(), "", "red.png", "image"),
        (png(), "application/octet-stream", "red.png", "image"),
        (png(), "image/*", "file-1.dat", "image"),
        (TEXT, "text/plain", "red.png", "resource"),
        (TEXT, "", "plan.md", "resource"),
        (TEXT, "application/json", "plan.json", "resource"),
        (TEXT, "image/png", "red.png", "text"),
        (b"\xff\xfe\x00", "text/plain", "plan.txt", "text"),
        (b"a\x00b", "", "plan", "text"),
        (b"%PDF-1.7\n\xe2\xe3", "application/pdf", "plan.pdf", "text"),
        (None, "image/png", "gone.png", "text"),
    ],
)
def test_the_bytes_and_the_type_decide(
    data: bytes | None, mime_type: str, name: str | None, becomes: str
) -> None:
    block = ChatBuilder("codex", "c", Notes("file")).attach(data, mime_type, name)

    assert block.type == becomes
    if becomes == "text":
        assert block.text == f"({name}: not imported)"


def test_a_name_leads_nowhere() -> None:
    block = ChatBuilder("codex", "c", Notes("file")).attach(TEXT, "", "../../etc/pass wd?")

    assert (block.name, block.uri) == ("pass wd?", "attachment:pass%20wd%3F")
