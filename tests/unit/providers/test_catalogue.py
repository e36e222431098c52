"""The data file of models is in order, and a name finds its own entry and no other's."""

from __future__ import annotations

import pytest

from sidecar.providers.catalogue import Catalogue, CatalogueEntry, catalogue
from sidecar.providers.endpoints import VENDORS
from sidecar.settings.providers import TYPES

FILE = catalogue()
SMALL = Catalogue(
    [CatalogueEntry("openai", name, name) for name in ("gpt-5", "gpt-5-mini", "gpt-5.6", "o3")]
    + [CatalogueEntry("anthropic", name, name) for name in ("claude-opus-5", "claude-opus-4-5")],
    {},
)


def test_every_model_stands_in_it_once() -> None:
    ids = [(known.type, known.match) for known in FILE.models]
    assert len(set(ids)) == len(ids)
    assert {type for type, _ in ids} <= set(VENDORS)
    assert all(known.name and known.match for known in FILE.models)


def test_figures_make_sense() -> None:
    for known in FILE.models:
        assert known.window is None or 1000 <= known.window <= 10_000_000, known
        if known.window and known.max_output:
            assert 0 < known.max_output <= known.window, known
        if known.prices is not None:
            assert {"input", "output"} <= known.prices.keys() <= {"input", "output", "cached"}, known
            assert 0 <= known.prices.get("cached", 0) <= known.prices["input"] <= known.prices["output"], (
                known
            )


def test_words_are_known_ones() -> None:
    efforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
    for known in FILE.models:
        assert set(known.modalities or ()) <= {"text", "image", "audio", "video", "pdf"}, known
        assert known.modalities is None or "text" in known.modalities, known
        assert set(known.efforts) <= efforts, known
        assert len(set(known.efforts)) == len(known.efforts), known
        assert known.thinking in (None, "budget", "adaptive"), known


def test_what_answers_by_default_is_in_the_file() -> None:
    assert set(FILE.defaults) <= set(TYPES)
    for type, model in FILE.defaults.items():
        found = FILE.find(type, model)
        assert found is not None
        assert found.match == model
        assert found.window


def test_every_entry_finds_itself() -> None:
    assert [FILE.find(known.type, known.match) for known in FILE.models] == FILE.models


@pytest.mark.parametrize("date", ["-2026-03-01", "-20260301", "-0301", "-latest", "-preview", "-exp", "-001"])
def test_a_release_is_the_model_that_it_is_a_release_of(date: str) -> None:
    for type, model in (("openai", "gpt-5"), ("openai", "gpt-5-mini"), ("anthropic", "claude-opus-4-5")):
        found = SMALL.find(type, model + date)
        assert found is not None
        assert found.match == model


@pytest.mark.parametrize(
    "other",
    ["gpt-5-nano", "gpt-5.7", "gpt-50", "gpt-5-6", "gpt-5x", "gpt-5-", "gpt-5 ", "openai/gpt-5", "GPT-5"],
)
def test_another_version_is_another_model(other: str) -> None:
    assert SMALL.find("openai", other) is None


def test_a_newer_version_is_not_taken_for_a_release() -> None:
    assert SMALL.find("anthropic", "claude-opus-5-1") is None
    assert SMALL.find("anthropic", "claude-opus-4") is None


def test_one_vendor_does_not_answer_for_another() -> None:
    assert SMALL.find("gemini", "gpt-5") is None
    assert SMALL.find("ollama", "gpt-5") is None
    assert SMALL.find("openai-responses", "gpt-5") == SMALL.find("openai", "gpt-5")


def test_what_a_model_can_do_is_said_where_it_is_known() -> None:
    able = {
        name: (found.tools, found.is_thinking)
        for type, name in [
            ("anthropic", "claude-sonnet-4-5"),
            ("anthropic", "claude-3-5-haiku"),
            ("gemini", "gemini-2.5-flash"),
            ("gemini", "gemini-2.0-flash-lite"),
            ("openai", "o3"),
            ("openai", "gpt-4o"),
            ("openai", "gpt-audio-mini"),
        ]
        if (found := FILE.find(type, name))
    }
    assert able == {
        "claude-sonnet-4-5": (True, True),
        "claude-3-5-haiku": (True, False),
        "gemini-2.5-flash": (True, True),
        "gemini-2.0-flash-lite": (None, False),
        "o3": (True, True),
        "gpt-4o": (True, False),
        "gpt-audio-mini": (None, None),
    }
