"""The generated files are what the table says; every method is on the page with an example that is true."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sidecar_protocol.catalog import METHODS, NOTIFICATIONS, REQUESTS, Method, Question
from sidecar_protocol.errors import CODES
from sidecar_protocol.export import openrpc
from sidecar_protocol.export.__main__ import PROTOCOL, generate_files
from sidecar_protocol.export.event_examples import WRITTEN_STATUSES, event_examples
from sidecar_protocol.export.examples import examples
from sidecar_protocol.export.order import _OF_METHOD as ORDERED
from sidecar_protocol.export.order import Order, order_in_words, order_of, when_in_words
from sidecar_protocol.export.reference import pretty
from sidecar_protocol.export.schemas import members, schemas, struct_schemas
from sidecar_protocol.export.vocabulary import MEANINGS
from sidecar_protocol.messages import EVENT_TYPES, ITEM_TYPES, STATUS_TYPES
from sidecar_protocol.messages.base import Json, Key, Params, Wire

PAGES = [path for path in generate_files() if path.suffix == ".md"]

KEY = {member.name for member in members("Key")}

_ASKED_OF = {
    "permissions": "Asked of a client whose `capabilities` have `permissions`.",
    "input": "Asked of a client whose `capabilities` have `input`.",
    "buffers": "Asked of a client whose `capabilities` have `buffers`.",
    "tools": "Asked of a client that has offered tools",
}

EVENT_DATA = {row.data for row in [*EVENT_TYPES.values(), *STATUS_TYPES.values()]}

each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
each_request = pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
each_of_both = pytest.mark.parametrize(
    "row", [*METHODS.values(), *REQUESTS.values()], ids=lambda row: row.name
)


@pytest.mark.parametrize("path", generate_files(), ids=lambda path: path.name)
def test_a_generated_file_is_not_stale(path: Path) -> None:
    assert path.read_text("utf-8") == generate_files()[path], "stale: run `make generate`"


@each_of_both
def test_the_example_of_the_table_decodes(row: Method | Question) -> None:
    assert msgspec.convert(row.example, row.params)


@each_method
def test_a_method_is_on_the_page_with_its_parameters_and_an_exchange(method: Method) -> None:
    section = _section(f"## `{method.name}`")

    assert method.summary in " ".join(section.split())
    own = [m.name for m in members(method.params.__name__) if m not in members("Key")]
    assert [name for name in own if f"| `{name}` |" not in section] == []
    assert ("(../README.md#the-parameters-of-a-chat)" in section) == issubclass(method.params, Key)
    assert f'"method": "{method.name}"' in section
    assert '"result": ' in section


@each_request
def test_a_request_to_the_client_is_on_the_page_with_who_is_asked_and_an_exchange(request_: Question) -> None:
    section = _section(f"## `{request_.name}`")

    assert request_.summary in " ".join(section.split())
    assert _ASKED_OF[request_.offered_by] in section
    assert f"| {request_.summary} | `{request_.offered_by}` |" in _text(PROTOCOL / "reference/client.md")
    both = [*members(request_.params.__name__), *members(request_.result.__name__)]
    assert [m.name for m in both if f"| `{m.name}` |" not in section] == []
    assert f'"method": "{request_.name}"' in section
    assert '"result": ' in section


@each_of_both
def test_an_exchange_decodes(row: Method | Question) -> None:
    example = examples()[row.name]

    msgspec.convert(example.params, row.params)
    msgspec.convert(example.result, row.result)


def test_a_capability_that_offers_a_request_is_one_that_a_client_can_have() -> None:
    offered = {request.offered_by for request in REQUESTS.values()}

    assert offered - {"tools"} == {m.name for m in members("ClientCapabilities")}
    assert "tools" in {m.name for m in members("InitializeParams")}


def test_every_member_of_every_type_has_a_meaning() -> None:
    assert [f"{name}.{m.name}" for name in schemas() for m in members(name) if not m.meaning] == []


@pytest.mark.parametrize(
    ("union", "types"), [("Event", EVENT_TYPES), ("Status", STATUS_TYPES), ("Item", ITEM_TYPES)]
)
def test_a_union_has_a_member_for_each_type_and_a_last_one_for_all_others(
    union: str, types: Mapping[str, object]
) -> None:
    named = [schemas()[ref["$ref"].rpartition("/")[2]] for ref in schemas()[union]["anyOf"]]

    assert [one["properties"]["type"].get("const") for one in named] == [*types, None]
    assert named[-1]["properties"]["type"]["not"] == {"$ref": f"#/components/schemas/{union}Type"}
    assert schemas()[f"{union}Type"]["enum"] == list(types)


def test_the_data_of_every_event_and_status_names_its_members() -> None:
    told: dict[str, Any] = {}
    for union, types in [("Event", EVENT_TYPES), ("Status", STATUS_TYPES)]:
        told |= {
            ref["$ref"]: schemas()[ref["$ref"].rpartition("/")[2]]["properties"]["data"]
            for ref in schemas()[union]["anyOf"][: len(types)]
        }

    assert [ref for ref, data in told.items() if data["type"] != "object" or "properties" not in data] == []
    assert len(told) == len(EVENT_TYPES) + len(STATUS_TYPES)


CLIENTS_OWN = {"ClientInfo", "PermissionAnswer", "InputAnswer", "ToolCallResult"}
"""What a client sends: a member that it leaves out has its default."""


def test_no_member_of_what_the_sidecar_answers_has_a_default_that_readers_must_know() -> None:
    answered = [
        struct
        for struct in _sent(Wire)
        if struct not in EVENT_DATA and struct.__name__ in struct_schemas().keys() - CLIENTS_OWN
    ]

    assert len(answered) > 100
    for struct in answered:
        rows = members(struct.__name__)
        sent = msgspec.json.decode(msgspec.json.encode(_least(struct)))
        assert [row.name for row in rows if row.schema.get("default") is not None] == [], struct
        assert {row.name for row in rows if row.required} <= sent.keys(), struct


def test_every_enum_of_the_document_says_its_type() -> None:
    assert [node for node in _nodes(openrpc()) if "enum" in node and "type" not in node] == []


@each_method
def test_the_events_that_a_method_causes_are_events_of_the_contract(method: Method) -> None:
    assert set(order_of(method).events) <= EVENT_TYPES.keys()
    assert order_in_words(method) in " ".join(_section(f"## `{method.name}`").split())


def test_the_order_of_methods_is_said_of_no_other_names() -> None:
    assert {method.name for method in METHODS.values() if order_of(method) != Order()} == ORDERED.keys()


@each_method
def test_required_parameters_come_before_optional_ones(method: Method) -> None:
    (document,) = [one for one in openrpc()["methods"] if one["name"] == method.name]
    required = [param["required"] for param in document["params"]]

    assert required == sorted(required, reverse=True)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_of_a_page_leads_to_a_heading(path: Path) -> None:
    for file, anchor in re.findall(r"\]\(([a-z./]*[a-zA-Z]*\.md)?#([^)]+)\)", _text(path)):
        target = (path.parent / file).resolve() if file else path
        headings = {
            re.sub(r"[^a-z0-9_-]", "", line.lower().replace(" ", "-").lstrip("#-"))
            for line in _headings(_text(target))
        }
        assert anchor in headings, (file, anchor)


def test_the_parameters_of_a_chat_are_said_once() -> None:
    section = _section("## The parameters of a chat")

    assert [name for name in KEY if f"- `{name}`: " not in section] == []
    assert [
        path.name
        for path in PAGES
        if "/reference/" in str(path) and "| `namespace` | string | optional | Separates" in _text(path)
    ] == []


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_an_event_is_on_its_page_with_its_members_an_example_and_when_it_comes(name: str) -> None:
    section = _section(f"### `{name}`")

    data = EVENT_TYPES[name].data
    assert [m.name for m in members(data.__name__) if f"| `{m.name}` |" not in section] == []
    assert when_in_words(name) in " ".join(section.split())
    shown = json.loads(section.partition("```json\n")[2].partition("```")[0])
    assert (shown["type"], isinstance(shown["data"], dict)) == (name, True)


@pytest.mark.parametrize("name", [*EVENT_TYPES, *STATUS_TYPES])
def test_the_example_of_an_event_has_the_members_of_its_type(name: str) -> None:
    events = event_examples(PROTOCOL / "transcripts")
    data = events[name]["data"] if name in EVENT_TYPES else WRITTEN_STATUSES[name]

    assert msgspec.convert(data, (EVENT_TYPES | STATUS_TYPES)[name].data)


def test_no_page_has_a_mark_left() -> None:
    assert [path.name for path in PAGES if re.findall(r"^<!-- [a-z ]+ -->$", _text(path), re.MULTILINE)] == []


def test_every_error_has_a_meaning() -> None:
    assert MEANINGS.keys() == CODES.keys()


def test_the_document_names_every_method_request_notification_error_and_event_type() -> None:
    document = openrpc()

    assert [method["name"] for method in document["methods"]] == list(METHODS)
    assert {request["name"]: request["offeredBy"] for request in document["x-requests"]} == {
        name: request.offered_by for name, request in REQUESTS.items()
    }
    assert [notice["name"] for notice in document["x-notifications"]] == list(NOTIFICATIONS)
    assert {error["name"]: error["code"] for error in document["x-errors"]} == CODES
    assert document["x-event-types"] == {name: row.meaning for name, row in EVENT_TYPES.items()}


def test_a_request_of_the_document_has_its_types_and_an_example() -> None:
    for request in openrpc()["x-requests"]:
        row = REQUESTS[request["name"]]
        names = [request[part]["$ref"].rpartition("/")[2] for part in ("params", "result")]
        assert names == [row.params.__name__, row.result.__name__]
        assert msgspec.convert(request["example"]["params"], row.params)
        assert msgspec.convert(request["example"]["result"], row.result)


def test_every_reference_in_the_document_leads_somewhere() -> None:
    document = openrpc()

    assert [ref for ref in _references(document) if _resolve(document, ref) is None] == []


def test_json_that_fits_a_line_stays_on_one_and_the_rest_is_broken() -> None:
    long = "x" * 90

    assert pretty({"a": [1, {"b": None}]}) == '{"a": [1, {"b": null}]}'
    assert pretty({"a": long, "b": []}) == f'{{\n  "a": "{long}",\n  "b": []\n}}'


def _section(heading: str) -> str:
    """What is below a heading, on the one page that has it."""
    (page,) = [text for text in map(_text, PAGES) if f"\n{heading}\n" in text]
    _, _, rest = page.partition(f"\n{heading}\n")
    return re.split(r"\n##+ ", rest)[0]


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _headings(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("#")]


def _sent(base: type[Wire]) -> Iterator[type[Wire]]:
    """The types that the sidecar sends."""
    for struct in base.__subclasses__():
        if not issubclass(struct, Params):
            yield struct
            yield from _sent(struct)


def _least(struct: type[Wire]) -> Wire:
    """A value with nothing but what it must be given."""
    fields = msgspec.structs.fields(struct)
    return struct(**{field.name: None for field in fields if field.required})


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Every schema in a schema. Examples are values, which may have members of any name."""
    if isinstance(node, dict):
        if isinstance(node.get("enum"), list):
            yield node
        node = [value for name, value in node.items() if name not in ("examples", "example")]
    for part in node if isinstance(node, list) else []:
        yield from _nodes(part)


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [ref for item in node for ref in _references(item)]
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for item in node.values() for ref in _references(item)]
    return []


def _resolve(document: Any, ref: str) -> Any:
    for part in ref.removeprefix("#/").split("/"):
        document = document.get(part, {})
    return document or None


OPEN = {
    "CommandResult.data": "what the method of the command answers",
    "CompactionEnded.files": "Sidecar's own record",
    "CompactionEnded.state": "Sidecar's own record",
    "ContextAssembled.kept": "Sidecar's own record",
    "HookRan.answer": "what a program of the user says",
    "ImportStarted.source": "what another program wrote",
    "InputRequest.schema": "a JSON Schema",
    "InputResolved.values": "by the members of the schema",
    "Notice.params": "by the code of the notice",
    "StorageStatus.recovered": "counts",
    "StorageStatus.removed": "counts",
    "StorageStatus.stripped": "counts",
    "ToolEnded.measured": "Sidecar's own record",
}
"""Members of events and statuses that have no type of their own, and why."""


def test_the_members_of_events_and_statuses_are_typed() -> None:
    rows = [*EVENT_TYPES.values(), *STATUS_TYPES.values()]
    open_members = {
        f"{row.data.__name__}.{name}"
        for row in rows
        for name, schema in struct_schemas()[row.data.__name__]["properties"].items()
        if _has_no_type(schema)
    }

    assert open_members == OPEN.keys()


def _has_no_type(schema: Json) -> bool:
    if "anyOf" in schema:
        return any(map(_has_no_type, schema["anyOf"]))
    if schema.get("type") == "array":
        return _has_no_type(schema["items"])
    return not schema.keys() & {"type", "$ref", "enum"} or schema.get("type") == "object"
