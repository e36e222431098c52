"""Which encoding counts for a model, by which factor, and what a provider's reports change about it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken.model import encoding_name_for_model

from sidecar.context.tokens.counting import TokenCounter
from sidecar.context.tokens.encodings import O200K
from sidecar.context.tokens.families import FAMILIES, UNKNOWN, Calibration, TokenizerFamily, family_of

GPT = family_of("gpt-4o")
CLAUDE = family_of("claude-sonnet-5")


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "gpt-4o-mini-2024-07-18",
        "chatgpt-4o-latest",
        "gpt-4.1",
        "gpt-4.1-nano",
        "gpt-4.5-preview",
        "gpt-5",
        "gpt-5.6-sol",
        "gpt-5-codex",
        "o1",
        "o1-mini",
        "o3",
        "o3-pro",
        "o4-mini",
        "gpt-4",
        "gpt-4-turbo",
        "gpt-4-1106-preview",
        "gpt-4-32k",
        "gpt-3.5-turbo",
        "gpt-35-turbo",
        "ft:gpt-4o-mini:org::id",
        "ft:gpt-4:org::id",
        "gpt-oss-120b",
    ],
)
def test_a_model_that_tiktoken_knows_is_counted_exactly_by_the_same_table(model: str) -> None:
    family = family_of(model)
    expected = encoding_name_for_model(model).replace("o200k_harmony", O200K)
    assert (family.exact, family.encoding) == (True, expected)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o", "o200k"),
        ("GPT-4o", "o200k"),
        ("openai.gpt-oss-20b-1:0", "o200k"),
        ("gpt-oss:20b", "o200k"),
        ("codex-mini-latest", "o200k"),
        ("azure/gpt-4-turbo", "cl100k"),
        ("gpt-6-sol", "gpt"),
        ("gpt-4.9", "gpt"),
        ("claude-opus-4-6", "claude-before-4.7"),
        ("claude-opus-4-20250514", "claude-before-4.7"),
        ("anthropic/claude-sonnet-4.5", "claude-before-4.7"),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "claude-before-4.7"),
        ("claude-opus-4-7", "claude"),
        ("anthropic/claude-opus-4.8", "claude"),
        ("claude-sonnet-5-5", "claude"),
        ("gemini-3.8-flash", "gemini"),
        ("gemma3:4b", "gemini"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama"),
        ("llama2:13b", "llama-2"),
        ("Qwen/Qwen2.5-Coder-7B", "qwen"),
        ("deepseek-r1", "deepseek"),
        ("deepseek-r1-distill-llama-70b", "llama"),
        ("mistral-small-latest", "mistral"),
        ("mixtral-8x7b", "llama-2"),
        ("SmolLM2-135M-Instruct", "smollm"),
        ("marco-o1", "unknown"),
        ("echo", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_model_belongs_to_the_family_of_its_tokenizer(model: str, name: str) -> None:
    assert family_of(model).name == name


def test_an_estimate_is_never_below_the_count_it_is_made_of() -> None:
    estimates = [family for _, family in FAMILIES if not family.exact] + [UNKNOWN]
    assert all(family.encoding == O200K and 1 < family.factor <= 2 for family in estimates)
    assert TokenCounter().count("hello world", CLAUDE) == 4


@settings(deadline=None)
@given(st.integers(-5, 10_000), st.floats(0.25, 4))
def test_the_most_tokens_for_a_room_are_the_last_that_fit(room: int, factor: float) -> None:
    family = TokenizerFamily("any", O200K, factor)
    most = family.most(room)
    assert family.scaled(most) <= max(0, room) < family.scaled(most + 1)


REPORTS = st.lists(st.tuples(st.integers(-1, 300_000), st.integers(-1, 300_000)), max_size=40)


@settings(deadline=None)
@given(REPORTS)
def test_a_calibration_stays_within_a_factor_of_two_whatever_is_reported(
    reports: list[tuple[int, int]],
) -> None:
    calibration = Calibration()
    for estimated, reported in reports:
        calibration = calibration.observed(estimated, reported)
        assert 0.5 <= calibration.factor <= 2


@settings(deadline=None)
@given(st.floats(0.5, 2), st.integers(1000, 100_000))
def test_equal_reports_lead_to_their_ratio_up_faster_than_down(ratio: float, estimated: int) -> None:
    calibration, reported = Calibration(), round(ratio * estimated)
    needed = 0
    while abs(calibration.factor - reported / estimated) > 0.02 and needed < 100:
        calibration, needed = calibration.observed(estimated, reported), needed + 1
    assert needed <= (6 if ratio > 1 else 30)


def test_small_and_empty_reports_teach_nothing() -> None:
    learnt = Calibration(1.25)
    assert [learnt.observed(*pair) for pair in [(0, 0), (10, 9000), (9000, 10), (-1, 500)]] == [learnt] * 4


def test_what_was_learnt_corrects_estimates_and_leaves_exact_counts_alone() -> None:
    learnt = Calibration().observed(1000, 1500)
    assert learnt == Calibration(1.25)
    assert learnt.applied(UNKNOWN).factor == pytest.approx(1.3 * 1.25)
    assert (learnt.applied(GPT), Calibration().applied(UNKNOWN)) == (GPT, UNKNOWN)
    assert msgspec.json.decode(msgspec.json.encode(learnt), type=Calibration) == learnt
