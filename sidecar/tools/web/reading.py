"""Convert a response to text for the model: which types are readable, in which encoding, and how. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from .markdown import to_markdown
from .reaching import Unreadable

SNIFFED_BYTES = 1024
"""Bytes in which a page declares its encoding, and by which an undeclared type is guessed."""

MAX_ERROR = 300
"""Characters of the excerpt in an error."""

ContentKind = Literal["html", "json", "text", "unknown"]

_TEXTS = re.compile(
    r"text/.+|application/(?:(?:[\w.-]+\+)?(?:xml|yaml|x-yaml)|yaml|toml|x-ndjson|ndjson|jsonl|json-seq|javascript"
    r"|x-javascript|ecmascript|x-sh|x-shellscript|sql|graphql|x-httpd-php|x-tex|x-latex|rtf|x-www-form-urlencoded)"
)
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json")
_HTML = ("text/html", "application/xhtml+xml")
_AMBIGUOUS_TYPES = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/unknown",
    "unknown/unknown",
)
_META = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype html|html|head|body|title)\b", re.I | re.S
)

_ENCODINGS = re.compile(
    r"ascii|utf-8|utf-16|utf-16-[lb]e|iso8859-(?:[2-9]|1[013-6]?)|cp125[0-8]|cp866|cp874|koi8-[ru]|mac-(?:roman|cyrillic)"
    r"|gb2312|gbk|gb18030|big5|big5hkscs|euc_jp|iso2022_jp|shift_jis|cp932|euc_kr|cp949|tis-620"
)
"""Encodings of the web. Python knows more, and some are unsafe for untrusted bytes (unicode_escape, utf-7)."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class PageText(msgspec.Struct, frozen=True):
    kind: Literal["html", "json", "text"]
    text: str
    title: str | None = None
    truncated: bool = False


def check_type(headers: Mapping[str, str]) -> None:
    """Refuse a type that is not text before its bytes are fetched."""
    if _content_kind(headers) is None:
        raise Unreadable(
            f"It is {_media_type(headers)[:80]}, which cannot be read here:"
            " only HTML, Markdown, JSON and other text can."
        )


def read_response(body: bytes, headers: Mapping[str, str], url: str) -> PageText:
    """Return the text of a response whose type was accepted."""
    kind = _content_kind(headers) or "unknown"
    if kind == "unknown":
        kind = _guess_kind(body)
    text = decode_body(body, headers, kind)
    if "\0" in text[:SNIFFED_BYTES]:
        raise Unreadable("It says that it is text, and is binary.")
    if kind == "html":
        page = to_markdown(text, url)
        return PageText("html", page.text, page.title, page.truncated)
    return PageText("json" if kind == "json" else "text", text.replace("\r\n", "\n"))


def decode_body(body: bytes, headers: Mapping[str, str], kind: ContentKind) -> str:
    """Decode by byte order mark, header, the page's declaration, else by what fits. Never fails: invalid bytes become
    `�`.
    """
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    told = re.search(
        r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", headers.get("content-type", ""), re.IGNORECASE
    )
    named = told[1] if told else None
    if named is None and kind == "html":
        meta = _META.search(body[:SNIFFED_BYTES])
        named = meta[1].decode("ascii", "replace") if meta else None
    known = _encoding(named)
    if known is not None:
        return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        most = error.start > 0.9 * len(body)  # cut within a character
        return body.decode("utf-8" if kind == "json" or most else "cp1252", "replace")


def error_excerpt(body: bytes, headers: Mapping[str, str], url: str) -> str:
    """Return a short excerpt of an error response."""
    if _content_kind(headers) is None:
        return ""
    try:
        text = read_response(body, headers, url)
    except Unreadable:
        return ""
    return " ".join(f"{text.title or ''} {text.text}".split())[:MAX_ERROR]


def _encoding(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if found in ("iso8859-1", "ascii"):
        return "cp1252"  # as browsers read it
    return found if _ENCODINGS.fullmatch(found) else None


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _content_kind(headers: Mapping[str, str]) -> ContentKind | None:
    kind = _media_type(headers)
    if kind in _AMBIGUOUS_TYPES:
        return "unknown"
    if kind in _HTML:
        return "html"
    if _JSON.fullmatch(kind):
        return "json"
    return "text" if _TEXTS.fullmatch(kind) else None


def _guess_kind(body: bytes) -> ContentKind:
    start = body[:SNIFFED_BYTES]
    if b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("It does not say of what type it is, and is binary.")
    if _LOOKS_LIKE_HTML.match(start):
        return "html"
    return "json" if start.lstrip()[:1] in (b"{", b"[") else "text"
