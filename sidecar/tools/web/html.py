"""HTML as a sequence of tags and texts, in one pass and linear time, for any bytes. Knows nothing of what tags mean.

Python's `html.parser` takes quadratic time on unclosed comments and tags in versions that are in use, and pages are
untrusted. This follows the tokenizer of the HTML standard where it matters: no backtracking, no failure.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Iterator

import msgspec

MAX_ATTRIBUTES = 64 * 1024
"""Characters of a tag in which attributes are parsed; images in data URLs make longer ones."""

_MARKUP_START = re.compile(r"<(?=[a-zA-Z/!?])")
# A quote counts only after an equals sign, as in browsers; possessive quantifiers prevent backtracking.
_TAG = re.compile(r"(/?)([a-zA-Z][^\s/>]*+)((?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+)>")
_ATTRIBUTE = re.compile(r"([^\s=>/\"'][^\s=>/]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]*+)))?+")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
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
            found.setdefault(match[1].lower(), unescape(value))
        return found


def names(text: str) -> frozenset[str]:
    """Return a set of element names from a space-separated text."""
    return frozenset(text.split())


def tokens(text: str) -> Iterator[Tag | str]:
    """Yield tags, and the text between them with its entities decoded."""
    at = 0
    while found := _MARKUP_START.search(text, at):
        if found.start() > at:
            yield unescape(text[at : found.start()])
        match = _TAG.match(text, found.end())
        if match is None:
            at = _skip_markup(text, found.end())
            continue
        slash, name, rest = match.groups()
        tag, at = Tag(name.lower(), slash == "/", rest), match.end()
        yield tag
        if not slash and tag.name in _RAW:
            end = _RAW[tag.name].search(text, at)
            stop = end.start() if end else len(text)
            if stop > at:
                yield unescape(text[at:stop])
            at = stop
    if at < len(text):
        yield unescape(text[at:])


def unescape(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return entities.unescape(text)
    except ValueError:  # a number of thousands of digits
        return text


def _skip_markup(text: str, at: int) -> int:
    """Return where a comment or other non-tag ends; one without an end extends to the end of the page."""
    if text.startswith("!--", at):
        end = text.find("-->", at + 1)  # `<!-->` is a whole comment
        return len(text) if end < 0 else end + 3
    end = text.find(">", at)
    return len(text) if end < 0 or text[at].isalpha() else end + 1
