"""Convert HTML to Markdown: title, headings, links, lists, tables, quotes and code; no scripts, styles, navigation.

Bounded in depth, output and time, which is linear in the length of the page. Never fails.
"""

from __future__ import annotations

import re
from urllib.parse import urljoin

import msgspec

from .blocks import MarkdownWriter
from .html import Tag, names, tokens

MAX_MARKDOWN = 8 * 1024 * 1024
"""Characters of output: links are made absolute, so a page of many short ones can grow."""

MAX_OPEN = 512
"""Nested elements, as in browsers; deeper ones count as text."""

MAX_TAGS = 250_000
"""Elements of a page, which bounds the time."""

MAX_MAINS = 64
"""Articles of a page that are counted; with more, none of them is the main content."""

MIN_MAIN = 250
"""Characters of a `main` or `article` that is taken for the content: less may be a teaser."""

FULL_PAGE_RATIO = 4
"""If the whole page is this many times longer than its `main`, the whole page is the content."""

_VOID = names("area base br col embed hr img input link meta param source track wbr")
_SKIPPED = names(
    "script style noscript template svg math canvas object embed iframe audio video map select datalist button"
    " textarea dialog xmp noembed noframes"
)
_BOILERPLATE = names("nav aside footer")
"""Elements around the content of a page, such as navigation."""

_BOILERPLATE_ROLES = names("navigation banner contentinfo search complementary dialog menu menubar")
_BREAKS = names(
    "address article aside body blockquote center dd details dialog div dl dt fieldset figcaption figure footer form"
    " h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table tbody td tfoot th"
    " thead tr ul caption"
)
_SPANS = {
    "b": "**",
    "strong": "**",
    "em": "*",
    "i": "*",
    "code": "`",
    "kbd": "`",
    "samp": "`",
    "tt": "`",
    "a": "a",
}
_ENDS = {
    "li": ("ul", "ol", "menu"),
    "dt": ("dl",),
    "dd": ("dl",),
    "tr": ("table",),
    "td": ("tr", "table"),
    "th": ("tr", "table"),
}
"""Elements that implicitly end an open element of the same kind, up to the nearest of these ancestors."""

_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:)[-\s]?([a-z0-9+#]{1,20})", re.I
)
_PAGE_DECORATION = re.compile(r"(?:^|\s)(?:linenos?|lineno|line-numbers-rows|blob-num|headerlink)(?:\s|$)")
"""Classes of line numbers, and of the signs that link to a heading."""


class MarkdownPage(msgspec.Struct, frozen=True):
    title: str | None
    text: str
    truncated: bool


def to_markdown(html: str, url: str) -> MarkdownPage:
    """Convert the page at `url`."""
    read = _Reader(url).read(html)
    if len(read.text) >= MIN_MAIN:
        return read
    # Nearly all may have been in elements that are usually omitted, or in one that was never closed.
    full = _Reader(url, keeps_boilerplate=True).read(html)
    return (
        full if len(full.text) > max(FULL_PAGE_RATIO * len(read.text), MIN_MAIN if read.text else 0) else read
    )


class _Reader:
    def __init__(self, url: str, keeps_boilerplate: bool = False) -> None:
        self._base = url
        self._origin = "/".join(url.split("/", 3)[:3])
        self._keeps_around = keeps_boilerplate
        self._open: list[tuple[str, bool]] = []
        self._counts: dict[str, int] = {}
        self._skipped = 0
        self._title: list[str] = []
        self._in_title = False
        self._mains: list[tuple[str, int, int | None]] = []
        self._blocks = MarkdownWriter()

    def read(self, html: str) -> MarkdownPage:
        tags, truncated = 0, False
        for token in tokens(html):
            if isinstance(token, str):
                self._text(token)
                continue
            if token.closes:
                self._close(token.name)
            else:
                self._begin(token)
            tags += 1
            if tags > MAX_TAGS or self._blocks.size > MAX_MARKDOWN:
                truncated = True
                break
        while self._open:
            self._pop()
        self._blocks.end()
        title = " ".join("".join(self._title).split())[:500] or self._blocks.first_heading
        return MarkdownPage(title, self._blocks.text(*self._content())[:MAX_MARKDOWN], truncated)

    def _text(self, text: str) -> None:
        if self._in_title and not self._title:
            self._title.append(text)
        elif not self._skipped:
            self._blocks.write(text)

    def _begin(self, tag: Tag) -> None:
        name = tag.name
        if name == "title" and not self._counts.get("svg"):
            self._in_title = True
        if name in _ENDS:
            self._end_like(name)
        attributes = tag.attributes() if tag.rest.strip(" /\n\t\r") else {}
        if name == "base":
            self._base = self._whole(attributes.get("href", "")) or self._base
        if name in _VOID:
            if not self._skipped:
                self._void(name, attributes)
            return
        if len(self._open) >= MAX_OPEN or (name == "table" and self._counts.get("table", 0) >= 8):
            return
        skips = self._skips(name, attributes)
        self._open.append((name, skips))
        self._counts[name] = self._counts.get(name, 0) + 1
        self._skipped += skips
        if not self._skipped:
            self._enter(name, attributes)

    def _skips(self, name: str, attributes: dict[str, str]) -> bool:
        if name in ("html", "body", "main"):
            return False
        if name in _SKIPPED:
            return not (name == "noscript" and self._keeps_around)
        if "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if _PAGE_DECORATION.search(attributes.get("class", "")):
            return True
        if self._keeps_around:
            return False
        if self._counts.get("article") or self._counts.get("main"):
            return name == "nav"  # an aside is a note there
        return name in _BOILERPLATE or attributes.get("role", "").lower() in _BOILERPLATE_ROLES

    def _enter(self, name: str, attributes: dict[str, str]) -> None:
        blocks = self._blocks
        if name in _BREAKS and not blocks.verbatim:
            blocks.end()
        if name in ("main", "article") and len(self._mains) <= MAX_MAINS:
            self._mains.append((name, blocks.count, None))
        if name in _SPANS:
            href = self._link(attributes.get("href", "")) if name == "a" else None
            if name == "code" and blocks.verbatim:
                blocks.language = blocks.language or _language(attributes)
            else:
                blocks.span(_SPANS[name], href)
        elif name == "pre":
            blocks.begin_verbatim(_language(attributes))
        elif name in ("ul", "ol", "menu"):
            blocks.begin_list(name == "ol", attributes.get("start", ""))
        elif name in ("li", "blockquote", "dd"):
            blocks.begin_item(name)
        elif name == "table":
            blocks.begin_table()
        elif name == "tr":
            blocks.begin_row()
        elif name in ("td", "th"):
            blocks.begin_cell(attributes.get("colspan", ""))
        elif len(name) == 2 and name[0] == "h" and name[1] in "123456":
            blocks.begin_heading(int(name[1]))
        elif name == "dt":
            blocks.span("**", None)

    def _end_element(self, name: str) -> None:
        blocks = self._blocks
        if name in _SPANS and not (name == "code" and blocks.verbatim):
            blocks.end_span(_SPANS[name])
        if name == "dt":
            blocks.end_span("**")
        if name == "pre":
            blocks.end_verbatim()
        elif name in _BREAKS and not blocks.verbatim:
            blocks.end()
        if name in ("ul", "ol", "menu"):
            blocks.end_list()
        elif name in ("li", "blockquote", "dd"):
            blocks.end_item()
        elif name == "table":
            blocks.end_table()
        elif name in ("td", "th"):
            blocks.end_cell()
        if name in ("main", "article"):
            self._end_main(name)

    def _end_main(self, name: str) -> None:
        for number in range(len(self._mains) - 1, -1, -1):
            found, start, end = self._mains[number]
            if found == name and end is None:
                self._mains[number] = (name, start, self._blocks.count)
                return

    def _void(self, name: str, attributes: dict[str, str]) -> None:
        blocks = self._blocks
        if name == "br":
            blocks.line_break()
        elif name == "hr" and not blocks.verbatim:
            blocks.rule()
        elif name == "img" and attributes.get("alt", "").strip():
            blocks.write(f"(image: {attributes['alt'].strip()[:300]})")
        elif name == "input" and attributes.get("type") == "checkbox":
            blocks.write("[x] " if "checked" in attributes else "[ ] ")

    def _close(self, name: str) -> None:
        if name == "title":
            self._in_title = False
        if name in ("br", "p") and not self._counts.get(name):
            if not self._skipped:
                self._blocks.line_break()
            return
        if not self._counts.get(name):
            return
        while self._pop() != name:
            pass

    def _end_like(self, name: str) -> None:
        """`<li>` ends the `<li>` before it, unless a nested list has begun."""
        likes = ("td", "th") if name in ("td", "th") else ("dt", "dd") if name in ("dt", "dd") else (name,)
        if not any(self._counts.get(like) for like in likes):
            return
        for number in range(len(self._open) - 1, max(-1, len(self._open) - 65), -1):
            found = self._open[number][0]
            if found in likes:
                while len(self._open) > number:
                    self._pop()
                return
            if found in _ENDS[name]:
                return

    def _pop(self) -> str:
        name, skips = self._open.pop()
        self._counts[name] -= 1
        if not self._skipped:
            self._end_element(name)
        self._skipped -= skips
        return name

    def _link(self, href: str) -> str | None:
        """Return the target of a link; None for a fragment and for what is no address. On the same site it is only
        the path, since absolute links would be most of the text of many pages.
        """
        whole = self._whole(href)
        if whole is None:
            return None
        path = whole.removeprefix(self._origin)
        return path if path.startswith("/") else whole

    def _whole(self, href: str) -> str | None:
        href = href.strip()
        if not href or href.startswith("#") or len(href) > 2000:
            return None
        try:
            whole = urljoin(self._base, href)
        except ValueError:
            return None
        if not whole.startswith(("http://", "https://", "mailto:")):
            return None
        return re.sub(r"[\s()<>]", lambda match: f"%{ord(match[0]):02X}", whole)

    def _content(self) -> tuple[int, int]:
        """Return the blocks of the content: those of `main` or the only `article`, if there are enough."""
        blocks = self._blocks
        for wanted in ("main", "article"):
            spans = [(start, end) for name, start, end in self._mains if name == wanted and end is not None]
            outer = [one for one in spans if not any(_holds(other, one) for other in spans)]
            alone = len(outer) == 1 and len(self._mains) <= MAX_MAINS
            if alone and blocks.length(*outer[0]) >= MIN_MAIN:
                return outer[0]
        return 0, blocks.count


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def _language(attributes: dict[str, str]) -> str:
    match = _LANGUAGE.search(attributes.get("class", "")[:500])
    return match[1].lower() if match else ""
