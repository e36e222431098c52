"""The fake provider: the HTTP APIs of OpenAI, Anthropic, Gemini and Ollama on loopback, strict, and faulty on demand.

For our own tests and for those of app developers (`sidecar fake-provider`). Imports nothing else of the sidecar.
"""

from __future__ import annotations

from .faults import FAULTS, find_fault
from .server import FakeProvider, in_thread, unused_port
from .values import DEFAULT_MODELS, Model, Recorded

__all__ = [
    "DEFAULT_MODELS",
    "FAULTS",
    "FakeProvider",
    "Model",
    "Recorded",
    "find_fault",
    "in_thread",
    "unused_port",
]
