"""A wrong type in every parameter of every method, made from the table: refused by name, never the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sidecar_protocol.catalog import METHODS

from tests.support.wire import Json

from .generated import Place, places, takes, whole, with_value
from .probe import Probe

VALUES: list[Any] = [None, True, 0, -1, 1.5, 2**53, 2**64, "", "x", [], [None], [[]], {}, {"zz": 1}]
ENDING = {"initialize", "shutdown"}
"""Methods that change the connection: they are only asked what they must refuse."""

LATER = [name for name in METHODS if name != "initialize"]


def attempts(method: str) -> Iterator[tuple[Place, Json]]:
    for place in places(method):
        for value in VALUES:
            yield place, with_value(whole(method), place.path, value)


def refusals(method: str) -> list[tuple[Place, Json]]:
    return [(place, params) for place, params in attempts(method) if not takes(method, params)]


def assert_refused_by_name(probe: Probe, method: str) -> None:
    wrong = refusals(method)
    answers = probe.ask_all(method, [params for _, params in wrong])
    for (place, params), (_, answer) in zip(wrong, answers, strict=True):
        error = answer.get("error", {})
        assert error.get("code") == -32602, f"{place.path} in {params}: {answer!r:.300}"
        assert place.name in json.dumps(error), f"{place.path} is not named: {error}"


@pytest.mark.parametrize("method", LATER)
def test_a_wrong_type_is_refused_by_name(probe: Probe, method: str) -> None:
    assert_refused_by_name(probe, method)


def test_a_wrong_type_in_initialize_is_refused_by_name(uninitialized: Probe) -> None:
    assert_refused_by_name(uninitialized, "initialize")


@pytest.mark.parametrize("method", [name for name in LATER if name not in ENDING])
def test_an_odd_value_of_the_right_type_is_answered_and_breaks_nothing(probe: Probe, method: str) -> None:
    odd = [params for _, params in attempts(method) if takes(method, params)]
    for params, answer in probe.ask_all(method, odd):
        assert answer.get("error", {}).get("code") != -32603, f"{method} {params}: {answer!r:.300}"


@pytest.mark.parametrize("method", LATER)
def test_a_missing_parameter_is_named(probe: Probe, method: str) -> None:
    for name in whole(method):
        params = {key: value for key, value in whole(method).items() if key != name}
        if not takes(method, params):
            ((_, answer),) = probe.ask_all(method, [params])
            assert answer["error"]["code"] == -32602
            assert name in json.dumps(answer["error"])


@pytest.mark.sampled(24)
@pytest.mark.parametrize("method", LATER)
def test_an_unknown_parameter_is_named(probe: Probe, method: str) -> None:
    ((_, answer),) = probe.ask_all(method, [{"zzUnknown": 1, **METHODS[method].example}])
    assert answer["error"]["code"] == -32602
    assert "zzUnknown" in json.dumps(answer["error"])
