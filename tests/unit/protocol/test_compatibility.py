"""What docs/compatibility.md promises of names: nothing that was in the contract goes, and nothing becomes required.

`contract.json` is the contract as it was. `python -m tests.unit.protocol.test_compatibility` adds what is new, and
takes nothing away; it is run when a version is released.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.errors import CODES
from sidecar_protocol.export.schemas import schemas
from sidecar_protocol.messages import EVENT_TYPES, ITEM_TYPES, STATUS_TYPES

FILE = Path(__file__).with_name("contract.json")

Contract = dict[str, Any]


def contract() -> Contract:
    """The names of the contract, as far as apps depend on them."""
    known = schemas()
    objects = {name: schema for name, schema in known.items() if "properties" in schema}
    return {
        "methods": {name: [method.takes, method.gives] for name, method in METHODS.items()},
        "events": sorted(EVENT_TYPES),
        "items": sorted(ITEM_TYPES),
        "statuses": sorted(STATUS_TYPES),
        "errors": dict(CODES),
        "members": {name: sorted(schema["properties"]) for name, schema in objects.items()},
        "required": {name: sorted(schema.get("required", [])) for name, schema in objects.items()},
        "values": {name: sorted(schema["enum"]) for name, schema in known.items() if "enum" in schema},
    }


BEFORE: Contract = json.loads(FILE.read_text("utf-8")) if FILE.exists() else contract()


@pytest.mark.parametrize("part", ["methods", "errors"])
def test_every_name_is_still_there_with_the_same_meaning(part: str) -> None:
    now = contract()[part]

    assert {name: now.get(name) for name in BEFORE[part]} == BEFORE[part]


@pytest.mark.parametrize("part", ["events", "items", "statuses"])
def test_every_type_is_still_there(part: str) -> None:
    assert set(BEFORE[part]) - set(contract()[part]) == set()


@pytest.mark.parametrize("part", ["members", "values"])
def test_no_member_and_no_value_of_a_type_is_gone(part: str) -> None:
    now = contract()[part]

    assert {name: gone for name, known in BEFORE[part].items() if (gone := set(known) - set(now[name]))} == {}


def test_no_parameter_became_required_and_no_member_of_an_answer_became_optional() -> None:
    now, taken = contract()["required"], {method.takes for method in METHODS.values()}

    for name, before in BEFORE["required"].items():
        if name in taken:
            assert set(now[name]) - set(before) == set(), name
        else:
            assert set(before) - set(now[name]) == set(), name


def _merged(before: Any, now: Any) -> Any:
    if isinstance(before, dict) and isinstance(now, dict):
        return {name: _merged(before.get(name, now.get(name)), now.get(name)) for name in {**before, **now}}
    if isinstance(before, list) and isinstance(now, list) and before == sorted(before, key=str):
        return sorted({*before, *now}, key=str)
    return before


if __name__ == "__main__":
    FILE.write_text(json.dumps(_merged(BEFORE, contract()), indent=1, sort_keys=True) + "\n", "utf-8")
