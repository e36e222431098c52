"""How many tokens a second a local model writes on this machine: measured with its answers, or estimated.

A measured speed is stored next to the model, so that a list shows it without running anything. The estimate is for
models that are not there yet: to write a token, the CPU reads the whole model once.
"""

from __future__ import annotations

import logging
import os
import time

import msgspec

logger = logging.getLogger(__name__)

MIN_TOKENS = 16
"""Fewer tokens say little: the first ones wait for memory and caches."""

WORTH_A_WRITE = 0.2
"""A speed within a fifth of the stored one is the same: other programs use the machine, too."""

SAMPLE_BYTES = 32 * 1024 * 1024
"""More than the caches of most CPUs hold, and read within some milliseconds."""

SAMPLES = 3

CORE_SHARE = 1 / 3
"""A core writes tokens at about a third of the speed at which it reads memory, because it also multiplies."""

MEMORY_SHARE = 1.2
"""All cores together get little more from the memory than one that only reads."""


class Speed(msgspec.Struct, frozen=True):
    """Tokens a second that a model file of so many bytes has written."""

    bytes: int
    tokens: float


def measured_rate(model: str) -> float | None:
    """Return what was measured with this model file as it is now, in tokens a second."""
    try:
        with open(speed_path(model), "rb") as file:
            found = msgspec.json.decode(file.read(), type=Speed)
        return found.tokens if found.bytes == os.path.getsize(model) else None
    except (OSError, msgspec.MsgspecError):
        return None


def note(model: str, written: int, tokens: float) -> None:
    """Store the speed of an answer of so many tokens, if it says something new."""
    known = measured_rate(model)
    if written < MIN_TOKENS or (known and abs(tokens / known - 1) <= WORTH_A_WRITE):
        return
    try:
        _replace(speed_path(model), msgspec.json.encode(Speed(os.path.getsize(model), round(tokens, 1))))
    except OSError as error:  # a folder that only others may write
        logger.info("the speed of a model was not stored", extra={"error": str(error)})


def estimate(size: int, threads: int) -> float:
    """Estimate how many tokens a second a model of so many bytes would write."""
    sample = bytearray(b"a") * SAMPLE_BYTES
    seconds = []
    for _ in range(SAMPLES):
        # Time of the CPU: what other programs do at this moment is no property of the machine.
        began = time.thread_time()
        sample.find(b"\xff")
        seconds.append(time.thread_time() - began)
    reads = SAMPLE_BYTES / max(min(seconds), 1e-6)
    return reads * min(threads * CORE_SHARE, MEMORY_SHARE) / size


def _replace(path: str, data: bytes) -> None:
    """Write a file of our own, which `system/files.py` refuses: models are in the folder of the database."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def speed_path(model: str) -> str:
    return f"{model.removesuffix('.gguf')}.speed.json"
