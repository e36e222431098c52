"""What every language gets from the contract: unions stay unions, names stay ours, later values have a place."""

from __future__ import annotations

import re

import pytest
from sidecar_protocol.catalog import METHODS, REQUESTS
from sidecar_protocol.export.languages import LANGUAGES, contract
from sidecar_protocol.export.languages.declarations import Enum, Object, TaggedUnion
from sidecar_protocol.export.schemas import schemas
from sidecar_protocol.messages import EVENT_TYPES, ITEM_TYPES, STATUS_TYPES

DECLARED = {one.name: one for one in contract().declarations}

OTHER = {"ts": "| OtherEvent;", "swift": "case other(OtherEvent)", "rust": "Other(OtherEvent),"}
OTHER |= {"kotlin": "else -> OtherEvent.serializer()"}

LATER = {"ts": "status: ItemStatus | Later;", "swift": "case unknown(String)", "rust": "Unknown(String),"}
LATER |= {"kotlin": "value class ItemStatus(val value: String)"}

each_language = pytest.mark.parametrize("language", LANGUAGES)


def text(language: str) -> str:
    _, write = LANGUAGES[language]
    return write(contract())


@pytest.mark.parametrize(
    ("name", "types"), [("Event", EVENT_TYPES), ("Item", ITEM_TYPES), ("Status", STATUS_TYPES)]
)
def test_a_union_has_every_type_and_an_open_last_one(name: str, types: dict[str, object]) -> None:
    union = DECLARED[name]
    assert isinstance(union, TaggedUnion)
    assert [variant.tag for variant in union.variants] == list(types)
    assert union.other == f"Other{name}"


def test_every_type_of_the_contract_is_declared() -> None:
    assert schemas().keys() - DECLARED.keys() == set()


def test_lists_of_values_have_the_names_of_the_contract() -> None:
    assert {
        name for name in ("ItemStatus", "Decision", "TurnReason") if isinstance(DECLARED.get(name), Enum)
    } == {
        "ItemStatus",
        "Decision",
        "TurnReason",
    }


def test_what_a_client_sends_is_known_as_sent() -> None:
    sent = {name for name, one in DECLARED.items() if isinstance(one, Object) and one.sent}
    assert {"PromptSendParams", "ContentBlock", "Cursor", "PermissionAnswer", "CancelRequestParams"} <= sent
    assert {"MessageItem", "Turn", "ChatOpenResult", "PermissionRequest"} & sent == set()


@each_language
def test_later_events_and_values_have_a_place(language: str) -> None:
    assert OTHER[language] in text(language)
    assert LATER[language] in text(language)


@each_language
def test_every_method_and_request_is_named(language: str) -> None:
    named = set(re.findall(r'"([a-zA-Z$]+[/.][A-Za-z]+|initialize|ping|shutdown)"', text(language)))
    assert {*METHODS, *REQUESTS} - named == set()


@each_language
def test_doc_comments_come_along(language: str) -> None:
    assert "The app's own name for the chat: 1 to 512 bytes of UTF-8 after NFC." in text(language)
