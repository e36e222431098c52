"""HTML as a run of tags and texts, in one pass and linear time, whatever the bytes. Knows nothing of what tags mean.

Python's own `html.parser` takes quadratic time on unclosed comments and tags in versions that are in use, and pages
come from strangers. This follows the tokenizer of the HTML standard where it matters: no look back, no failure.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Iterator

import msgspec

MAX_ATTRIBUTES = 64 * 1024
"""Characters of a tag in which attributes are looked for; images within an address make longer ones."""

_NEXT = re.compile(r"<(?=[a-zA-Z/!?])")
_NAME = re.compile(r"[a-zA-Z][^\s/>]*+")
# A quote counts only after an equals sign, as in browsers; nothing is read twice (possessive).
_REST = re.compile(r"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+>")
_ATTRIBUTE = re.compile(r"([^\s=>/\"'][^\s=>/]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]*+)))?+")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript")
}
"""Elements whose text has no tags in it."""


class Tag(msgspec.Struct, frozen=True):
    name: str
    closes: bool
    rest: str = ""

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.rest[:MAX_ATTRIBUTES]):
            value = next((part for part in match.groups()[1:] if part is not None), "")
            found.setdefault(match[1].lower(), unescaped(value))
        return found


def names(text: str) -> frozenset[str]:
    """Names of elements, written one after another."""
    return frozenset(text.split())


def tokens(text: str) -> Iterator[Tag | str]:
    """Tags, and the text between them with its entities resolved."""
    at = 0
    while at < len(text):
        found = _NEXT.search(text, at)
        if found is None:
            yield unescaped(text[at:])
            return
        if found.start() > at:
            yield unescaped(text[at : found.start()])
        tag, at = _tag(text, found.end())
        if tag is None:
            continue
        yield tag
        if not tag.closes and tag.name in _RAW:
            end = _RAW[tag.name].search(text, at)
            stop = end.start() if end else len(text)
            if stop > at:
                yield text[at:stop] if tag.name in ("script", "style") else unescaped(text[at:stop])
            at = stop


def unescaped(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return entities.unescape(text)
    except ValueError:  # a number of thousands of digits
        return text


def _tag(text: str, at: int) -> tuple[Tag | None, int]:
    """The tag that begins after the `<` before `at`, and where it ends; what has no end takes the rest with it."""
    if text.startswith("!--", at):
        end = text.find("-->", at + 1)  # `<!-->` is a whole comment
        return None, len(text) if end < 0 else end + 3
    closes = text.startswith("/", at)
    name = _NAME.match(text, at + closes)
    if name is None:
        end = text.find(">", at)
        return None, len(text) if end < 0 else end + 1
    rest = _REST.match(text, name.end())
    if rest is None:
        return None, len(text)
    return Tag(name[0].lower(), closes, rest[0][:-1]), rest.end()
