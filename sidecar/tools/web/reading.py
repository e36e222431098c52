"""A server's answer as text that a model can read: which types are read, in which encoding, and how. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from .markdown import to_markdown
from .reaching import Unreadable

SNIFFED = 1024
"""Bytes in which a page says its encoding, and by which a type that is not told is guessed."""

MAX_ERROR = 300
"""Characters of the words that go with a failure."""

Reads = Literal["html", "json", "text", "unknown"]

_TEXTS = re.compile(
    r"text/.+|application/(?:(?:[\w.-]+\+)?(?:xml|yaml|x-yaml)|yaml|toml|x-ndjson|ndjson|jsonl|json-seq|javascript"
    r"|x-javascript|ecmascript|x-sh|x-shellscript|sql|graphql|x-httpd-php|x-tex|x-latex|rtf|x-www-form-urlencoded)"
)
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json")
_HTML = ("text/html", "application/xhtml+xml")
_MAYBE = ("", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown")
_META = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype html|html|head|body|title)\b", re.I | re.S
)

_ENCODINGS = re.compile(
    r"ascii|utf-8|utf-16|utf-16-[lb]e|iso8859-(?:[2-9]|1[013-6]?)|cp125[0-8]|cp866|cp874|koi8-[ru]|mac-(?:roman|cyrillic)"
    r"|gb2312|gbk|gb18030|big5|big5hkscs|euc_jp|iso2022_jp|shift_jis|cp932|euc_kr|cp949|tis-620"
)
"""Those of the web. Python knows more, and some of them are not for strangers' bytes (unicode_escape, utf-7)."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Text(msgspec.Struct, frozen=True):
    kind: Literal["html", "json", "text"]
    text: str
    title: str | None = None
    truncated: bool = False


def check_type(headers: Mapping[str, str]) -> None:
    """Refuse a type that is none of text before its bytes are fetched."""
    if _reads(headers) is None:
        raise Unreadable(
            f"It is {_type(headers)[:80]}, which cannot be read here: only HTML, Markdown, JSON and other text can."
        )


def read(body: bytes, headers: Mapping[str, str], url: str) -> Text:
    """The text of an answer whose type was accepted."""
    kind = _reads(headers) or "unknown"
    if kind == "unknown":
        kind = _guessed(body)
    text = decoded(body, headers, kind)
    if "\0" in text[:SNIFFED]:
        raise Unreadable("It says that it is text, and is binary.")
    if kind == "html":
        page = to_markdown(text, url)
        return Text("html", page.text, page.title, page.truncated)
    return Text("json" if kind == "json" else "text", text.replace("\r\n", "\n"))


def decoded(body: bytes, headers: Mapping[str, str], kind: Reads) -> str:
    """By byte order mark, header, the page's own word, and else by what fits. Never fails: what does not fit is `�`."""
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    told = re.search(
        r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", headers.get("content-type", ""), re.IGNORECASE
    )
    named = told[1] if told else None
    if named is None and kind == "html":
        meta = _META.search(body[:SNIFFED])
        named = meta[1].decode("ascii", "replace") if meta else None
    known = _encoding(named)
    if known is not None:
        return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        most = error.start > 0.9 * len(body)  # cut within a character
        return body.decode("utf-8" if kind == "json" or most else "cp1252", "replace")


def error_words(body: bytes, headers: Mapping[str, str], url: str) -> str:
    """A few words of an answer that says what went wrong."""
    if _reads(headers) is None:
        return ""
    try:
        text = read(body, headers, url)
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


def _type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _reads(headers: Mapping[str, str]) -> Reads | None:
    kind = _type(headers)
    if kind in _MAYBE:
        return "unknown"
    if kind in _HTML:
        return "html"
    if _JSON.fullmatch(kind):
        return "json"
    return "text" if _TEXTS.fullmatch(kind) else None


def _guessed(body: bytes) -> Reads:
    start = body[:SNIFFED]
    if b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("It does not say of what type it is, and is binary.")
    if _LOOKS_LIKE_HTML.match(start):
        return "html"
    return "json" if start.lstrip()[:1] in (b"{", b"[") else "text"
