"""Text without case and accents, for comparison."""

from __future__ import annotations

import functools
import unicodedata

WIDE = "\u2e80-\u2fff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Characters of scripts without spaces, for a class of an expression: each is a word of its own."""


def fold_text(text: str) -> str:
    """Return the text without case, and Latin letters without accents, which many people omit."""
    if text.isascii():
        return text.lower()
    return fold_case(text).replace("\u2019", "'").translate(_plain_letters())


def remove_accents(text: str) -> str:
    """Return the text in lower case and without accents in any script, as SQLite's tokenizer does."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in plain if not unicodedata.combining(c))).lower()


def fold_case(text: str) -> str:
    """Return the text without case and in one Unicode form; accents stay."""
    return unicodedata.normalize("NFKC", text).casefold()


@functools.cache
def _plain_letters() -> dict[int, str]:
    return {
        code: base
        for code in range(0xC0, 0x250)
        if (base := unicodedata.normalize("NFD", chr(code))[0]) != chr(code) and base.isascii()
    }
