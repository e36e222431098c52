"""`reason`, `retryable`, `action` and `retryAfterMs` of every error agree: an app that follows one never contradicts
another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import sidecar
from sidecar.chat.journal import event_factory
from sidecar.model.failures import PROVIDER_ACTIONS, Failure, ProviderFailed, StorageFailed, out_of_memory
from sidecar.providers.http import errors
from sidecar.providers.http.errors import ProviderError
from sidecar.providers.script_format import ScriptedFault
from sidecar.store.engine import opening
from sidecar.store.engine.file_watch import Loss, files_lost
from sidecar.store.engine.sqlite import storage_failure
from tests.unit.providers.test_faults import HERE

PASSING = ("retry", "check_network", "free_disk")
"""Actions that leave the request as it is."""


def disagreement(failure: Failure) -> str | None:
    """What contradicts itself in an error's details."""
    data: dict[str, Any] = failure.details()
    action, retryable = data.get("action"), data["retryable"]
    if action == "retry" and not retryable:
        return "it says `retry` and cannot be retried"
    if retryable and action not in (*PASSING, None):
        return f"it can be retried and says `{action}`"
    if "retryAfterMs" in data and not retryable:
        return "it says when to retry and cannot be retried"
    if data["name"] == "provider_error" and action is None:
        return "it says nothing about what to do"
    return None


FIXED = {
    "no_key": (False, "enter_key"),
    "bad_key": (False, "enter_key"),
    "quota": (False, "check_billing"),
    "rate_limit": (True, "retry"),
    "overloaded": (True, "retry"),
    "offline": (True, "check_network"),
    "timeout": (True, "retry"),
    "model_unknown": (False, "choose_model"),
    "window": (False, "compact"),
    "refused": (False, "edit_prompt"),
    "stream_cut": (True, "retry"),
    "bad_reply": (True, "retry"),
}
"""What each reason of the contract means for an app."""


@pytest.mark.parametrize("reason", FIXED)
def test_each_reason_has_its_action(reason: str) -> None:
    failed = errors.failure(reason, "words", HERE)
    assert (failed.retryable, failed.action) == FIXED[reason]
    assert set(PROVIDER_ACTIONS) == set(FIXED)


WORDS = (
    "",
    "Could not process image",
    "Invalid request.",
    "prompt is too long: 9 tokens > 8 maximum",
    "Your credit balance is too low",
    "flagged by our policy",
    "model x does not exist",
)


@pytest.mark.parametrize("status", [*range(300, 310), *range(400, 452), 499, *range(500, 512), 529])
def test_every_status_and_word_of_a_provider_agrees(status: int) -> None:
    for words, after in product(WORDS, (None, 7)):
        failed = errors.classify(ProviderError(status, "", words, after), HERE)
        assert disagreement(failed) is None, (words, failed.details())


@pytest.mark.parametrize(("reason", "retryable"), list(product(FIXED, (True, False, None))))
def test_every_fault_of_a_script_agrees(reason: Any, retryable: bool | None) -> None:
    failed = ScriptedFault(reason=reason, retryable=retryable, retry_after_ms=5).failure()
    assert disagreement(failed) is None


def test_failures_of_the_store_and_of_the_chat_agree() -> None:
    made: list[Failure] = [out_of_memory(), event_factory.turn_in_progress(), storage_failure(MemoryError())]
    made += [storage_failure(OSError(number, "x")) for number in (5, 13, 28, 30)]
    made.append(StorageFailed("io", "x", action="retry", retryable=True))
    kinds: tuple[Any, ...] = ("removed", "replaced", "overwritten")
    made += [files_lost(Loss(kind, "f"), copy) for kind in kinds for copy in (None, "copy.db")]
    made += [opening._folder_failure(Path("d"), OSError(number, "x")) for number in (5, 13, 20, 28, 30, 122)]
    assert [disagreement(failure) for failure in made] == [None] * len(made)


RAISED = ("Failure", "Refused", "StorageFailed", "ProviderFailed")


def _made() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each failure that the source makes, with the arguments that are written out."""
    for file in Path(sidecar.__file__).parent.rglob("*.py"):
        text = file.read_text()
        if not any(f"{name}(" in text for name in RAISED):
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", getattr(node.func, "attr", "")) in RAISED
            ):
                given = {
                    word.arg: word.value.value
                    for word in node.keywords
                    if word.arg and isinstance(word.value, ast.Constant)
                }
                named = {word.arg for word in node.keywords}
                computes = "retryable" in named and "retryable" not in given
                yield f"{file.name}:{node.lineno}", {**given, "names": named, "computes": computes}


def test_no_failure_in_the_source_contradicts_itself() -> None:
    found = dict(_made())
    assert len(found) > 60, "the source was not looked through"
    wrong = [
        place
        for place, given in found.items()
        if (given.get("action") == "retry" and given.get("retryable") is not True)
        or (given.get("retryable") is True and given.get("action") not in (*PASSING, None))
        or ("retry_after_ms" in given["names"] and "retryable" not in given["names"])
        or (given.get("action") not in (*PASSING, None) and given["computes"])
    ]
    assert wrong == []


def test_a_refusal_that_says_when_to_retry_is_caught() -> None:
    """The rule itself: a failure made by hand that breaks it is named."""
    assert disagreement(Failure("storage", "x", action="retry")) is not None
    assert disagreement(Failure("storage", "x", retryable=True, action="edit_prompt")) is not None
    assert disagreement(Failure("overloaded", "x", retry_after_ms=5)) is not None
    assert disagreement(ProviderFailed("quota", "x", retry_after_ms=5)) is None
