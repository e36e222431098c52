"""Keys and tokens that are recognised by their form, for text from other programs whose secrets nobody here knows."""

from __future__ import annotations

import re

HIDDEN = "(hidden)"

_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("sk-",), re.compile(r"\bsk-(?:ant-|proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{20,}")),
    (("gh", "github_pat_"), re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})")),
    (("glpat-",), re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    (("AIza",), re.compile(r"\bAIza[A-Za-z0-9_-]{35}")),
    (("AKIA", "ASIA"), re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    (("xox",), re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    (("hf_",), re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    (("npm_",), re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    (("pypi-",), re.compile(r"\bpypi-[A-Za-z0-9_-]{50,}")),
    (("gsk_", "xai-", "r8_"), re.compile(r"\b(?:gsk_|xai-|r8_)[A-Za-z0-9]{30,}")),
    (("_live_", "_test_"), re.compile(r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    (("eyJ",), re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    (("PRIVATE KEY",), re.compile(r"(?<=PRIVATE KEY-----)[^\"-]{20,20000}(?=-----END)", re.DOTALL)),
    (("earer ", "asic "), re.compile(r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{20,}=*|(?<=[Bb]asic )[A-Za-z0-9+/]{20,}=*")),
)  # fmt: skip
"""What a text must contain for a form to be looked for, and the form: most texts contain none."""

_NAMED = re.compile(
    r"""((?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|secret[_-]?key|password|passwd)"""
    r"""\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?)([^\s"'\\,;(){}<>$]{8,200})""",
    re.IGNORECASE,
)
"""A value that its name calls a secret, as in `API_KEY=…` and `"password": "…"`, also inside a JSON string."""

_NAMES = ("key", "token", "secret", "passw")


def hide_secrets(text: str) -> str:
    """Return the text with everything that has the form of a secret replaced."""
    for starts, shape in _SHAPES:
        if any(start in text for start in starts):
            text = shape.sub(HIDDEN, text)
    lowered = text.lower()
    if any(name in lowered for name in _NAMES):
        text = _NAMED.sub(lambda found: found[1] + HIDDEN if _is_value(found[2]) else found[0], text)
    return text


def _is_value(text: str) -> bool:
    """Whether it can be a secret: one has letters and digits, a word of a program or a sentence has not both."""
    return (
        any(char.isdigit() for char in text) and any(char.isalpha() for char in text) and "." not in text[:-1]
    )
