"""The manifest as JSON: its members, their order, and what is absent."""

from __future__ import annotations

import msgspec
import pytest

from sidecar.context.materials import Inclusion, Manifest, ManifestBlock
from sidecar.model.content import SentBlock
from sidecar.model.events import encode

FIGURES = b'{"model":"fake:small","window":8000,"reserve":1000,"budget":7000,"used":12,"exact":true,'


def manifest(*blocks: ManifestBlock) -> Manifest:
    return Manifest("fake:small", 8000, 1000, 7000, 12, True, list(blocks))


def block(text: str = "", included: Inclusion = "full") -> ManifestBlock:
    return ManifestBlock("rules", "rules", "AGENTS.md", 12, included, "always", text)


def test_a_manifest_has_its_members_in_the_order_of_the_contract() -> None:
    assert encode(manifest(block())) == FIGURES + (
        b'"blocks":[{"id":"rules","kind":"rules","label":"AGENTS.md","tokens":12,"included":"full",'
        b'"gate":"always"}]}'
    )


def test_the_text_of_a_block_is_there_until_it_is_removed() -> None:
    whole = manifest(block("Be brief."), block("", "dropped"))

    assert [one.get("text") for one in msgspec.to_builtins(whole)["blocks"]] == ["Be brief.", None]
    assert b"Be brief." not in encode(whole.without_text())
    assert whole.blocks[0].text == "Be brief."


@pytest.mark.parametrize(
    ("included", "sent"), [("full", True), ("truncated", True), ("summary", True), ("dropped", False)]
)
def test_only_a_dropped_block_is_not_sent(included: Inclusion, sent: bool) -> None:
    assert block("x", included).is_sent is sent


def test_only_the_first_request_of_a_turn_has_kept_blocks() -> None:
    first = msgspec.structs.replace(manifest(), kept=[SentBlock(label="a.py", path="a.py", hash="0f")])
    none = msgspec.structs.replace(manifest(), kept=[])

    assert encode(first).endswith(b'"blocks":[],"kept":[{"label":"a.py","path":"a.py","hash":"0f"}]}')
    assert encode(none) == FIGURES + b'"blocks":[],"kept":[]}'
    assert encode(manifest()) == FIGURES + b'"blocks":[]}'
