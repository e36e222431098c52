"""HTML as Markdown: what is kept, what is left out, and pages that are written to break whoever reads them."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from sidecar.tools.web import blocks, markdown
from sidecar.tools.web.html import Tag, tokens
from sidecar.tools.web.markdown import to_markdown
from tests.support.patience import PATIENCE_S

BASE = "https://example.org/docs/guide/"
LONG = "The mill grinds flour for the whole valley. " * 8


def md(html: str) -> str:
    return to_markdown(html, BASE).text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>A</h1><h3>B</h3><p>c", "# A\n\n### B\n\nc"),
        ("<h2>Set up<a class=headerlink href=#set-up>¶</a></h2>", "## Set up"),
        ("one   two\n\nthree<br>four", "one two three\nfour"),
        ("<p>a<p>b<div>c<div>d</div></div>", "a\n\nb\n\nc\n\nd"),
        ("<b>x</b> <em>y</em> <strong>z <b>w</b></strong>", "**x** *y* **z w**"),
        ("<code>a b</code>, <kbd>Ctrl</kbd>, <code>`</code>", "`a b`, `Ctrl`, `` ` ``"),
        ('<a href="../x?a=1&amp;b=2">link</a>', "[link](/docs/x?a=1&b=2)"),
        ('<a href="//other.test/a (b)">x</a>', "[x](https://other.test/a%20%28b%29)"),
        ('<a href="http://example.org/x">a</a>', "[a](http://example.org/x)"),
        ('<a href="https://example.org.evil.test/x">a</a>', "[a](https://example.org.evil.test/x)"),
        ('<a href="#part">here</a> <a href="javascript:x()">js</a> <a>bare</a>', "here js bare"),
        ('<a href="/card"><div><h3>Card</h3><p>text</p></div></a>', "### [Card](/card)\n\ntext"),
        ("<img src=a.png alt='A mill'><img src=b.png>", "(image: A mill)"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ul><li><p>a</p><p>b</p></li><li>c</li></ul>", "- a\n\n  b\n- c"),
        ("<p>x<ul><li>a</ul><p>y", "x\n\n- a\n\ny"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n\n> b\n\nc"),
        ("<pre>  a\n\n  b &lt;c&gt;\n</pre>", "```\n  a\n\n  b <c>\n```"),
        ('<pre><code class="language-python">x = 1</code></pre>', "```python\nx = 1\n```"),
        ('<div class="highlight-source-rust"><pre>fn f()</pre></div>', "```\nfn f()\n```"),
        ("<pre>```\nin\n```</pre>", "````\n```\nin\n```\n````"),
        ("<table><tr><th>a<th>b<tr><td>1|2<td>3</table>", "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"),
        ("<table><thead><tr><td colspan=2>ab</thead><tr><td>1<td>2</table>", "| ab |  |\n| --- | --- |\n| 1 | 2 |"),
        ("<table><tr><td><p>a</p><p>b</p><td>c</table>", "a\n\nb\n\nc"),
        ("<table><tr><th>a<th>b<tr><td><p>1</p><p>2</p><td>3</table>", "| a | b |\n| --- | --- |\n| 1 2 | 3 |"),
        ("<table><tr><td><h2>a</h2><td>b<tr><td>c<td>d</table>", "## a\n\nb\n\nc\n\nd"),
        ("<table><tr><th>a<th>b<tr><td><code>x</code><td>#y</table>", "| a | b |\n| --- | --- |\n| `x` | #y |"),
        ("<table><tr><td><table><tr><td>in<td>ner</table><td>out</table>", "in\n\nner\n\nout"),
        ("<dl><dt>Word<dd>What it means.</dl>", "**Word**\n\n: What it means."),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<ul><li><input type=checkbox checked>done<li><input type=checkbox>not</ul>", "- [x] done\n- [ ] not"),
        ("&lt;b&gt; &amp;amp; &eacute; &#8364; &#x20ac; &nosuch; &", "<b> &amp; é € € &nosuch; &"),
        ("a < b and c > d <3", "a < b and c > d <3"),
        ("<p title='a > b'>x</p><p don't>y</p>", "x\n\ny"),
        ("<P CLASS=a>x</P><BR/>", "x"),
        ("<td>no table</td><li>no list</li></div></p>", "no table\n\n- no list"),
    ],
)  # fmt: skip
def test_html_becomes_markdown(html: str, expected: str) -> None:
    assert md(html) == expected


@pytest.mark.parametrize(
    "around",
    [
        "<script>if (a < b) { '</p>' }</script>", "<style>p { color: red }</style>", "<!-- <p>hidden</p> -->",
        "<nav><ul><li><a href=/>Home</a></ul></nav>", "<aside>ads</aside>", "<footer>(c)</footer>",
        "<svg><text>t</text></svg>",
        "<form><input name=q><button>Go</button></form>", "<div role=navigation>menu</div>", "<div hidden>x</div>",
        "<span aria-hidden=true>x</span>", "<template><p>x</p></template>", "<noscript>turn it on</noscript>",
        "<select><option>a<option>b</select>", "<iframe src=x>frame</iframe>", "<textarea><p>x</textarea>",
        "<!doctype html>",
        "<?xml version='1.0'?>", "<![CDATA[x]]>", "<head><meta charset=utf-8><link rel=x></head>",
    ],
)  # fmt: skip
def test_what_is_no_content_is_left_out(around: str) -> None:
    assert md(f"{around}<p>content</p>{around}") == "content"


def test_the_title_and_else_the_first_heading_is_the_title() -> None:
    assert to_markdown("<title> A &amp;\n B </title><h1>x</h1>", BASE).title == "A & B"
    assert to_markdown("<p>a<h2>The <i>mill</i></h2>", BASE).title == "The *mill*"
    assert to_markdown("<svg><title>icon</title></svg>text", BASE).title is None


@pytest.mark.parametrize("name", ["main", "article"])
def test_of_a_page_with_one_main_part_that_is_taken(name: str) -> None:
    html = f"<div>menu</div><{name}><h1>Mill</h1><p>{LONG}</p></{name}><div>more news</div>"
    assert md(html) == f"# Mill\n\n{LONG.strip()}"


def test_of_a_page_with_many_articles_or_a_short_one_all_is_taken() -> None:
    assert "menu" in md(f"menu<article>{LONG}</article><article>{LONG}</article>")
    assert "menu" in md("menu<main>short</main>")


@pytest.mark.parametrize(
    "html",
    [
        "<head><title>x</title><body><p>y",
        "<form><p>y</p><input></form>",
        "<noscript>y</noscript>",
        "<aside>y",
    ],
)
def test_no_page_comes_out_empty_that_has_words(html: str) -> None:
    assert md(html) == "y"


def test_a_note_within_the_content_is_kept() -> None:
    assert "Mind the sails." in md(f"<main><p>{LONG}</p><aside>Mind the sails.</aside><nav>next</nav></main>")


def test_a_page_that_is_all_navigation_is_shown_as_it_is() -> None:
    assert md(f"<nav><p>{LONG}</p></nav>menu") == f"{LONG.strip()}\n\nmenu"
    assert md("<nav><a href=/a>A</a> <p>Only this") == "[A](/a)\n\nOnly this"


def test_a_base_is_what_links_are_relative_to() -> None:
    assert md("<base href='https://cdn.test/x/'><a href=y>z</a>") == "[z](https://cdn.test/x/y)"


BOMBS = {
    "nested": "<div>" * 100_000 + "deep",
    "lists": "<ul><li>x" * 20_000,
    "quotes": "<blockquote>x" * 50_000,
    "tables": "<table><tr><td>x" * 15_000,
    "definitions": "<dl><dt>x<dd>y" * 10_000,
    "bold": "<b>x<i>y" * 30_000,
    "links": "<a href=x>y" * 60_000,
    "unclosed tags": "<a " * 300_000,
    "unclosed quotes": "<a b='" * 150_000,
    "unclosed comments": "<!--" * 250_000,
    "brackets": "<" * 1_000_000,
    "closings": "<b>" * 500 + "</i></p></br>" * 15_000,
    "one line": "word " * 400_000,
    "one word": "x" * 4_000_000,
    "entities": "&" * 500_000 + "&#" + "9" * 100_000 + ";",
    "backticks": "<pre>" + "`" * 1_000_000,
    "attributes": "<p " + "a=b " * 250_000 + ">x",
    "articles": "<article>x</article>" * 15_000,
    "controls": "\x00\x01\x1b[31m\x7f" * 100_000 + "x",
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", BOMBS)
async def test_no_page_takes_for_ever(name: str) -> None:
    """What is quadratic would take minutes."""
    with anyio.fail_after(PATIENCE_S):
        read = await anyio.to_thread.run_sync(to_markdown, BOMBS[name], BASE, abandon_on_cancel=True)
    assert len(read.text) <= markdown.MAX_MARKDOWN
    assert not any(char < " " and char != "\n" for char in read.text[:1000])


def test_what_grows_beyond_the_bound_is_cut_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MAX_MARKDOWN", 1000)
    read = to_markdown("<p><a href=x>y</a></p>" * 500, BASE)
    assert (read.truncated, len(read.text)) == (True, 1000)


def test_more_tags_than_a_page_has_are_cut_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MAX_TAGS", 10)
    read = to_markdown("<p>x" * 50, BASE)
    assert (read.truncated, read.text.count("x")) == (True, 10)


def test_deep_lists_are_indented_so_far_and_no_farther() -> None:
    deepest = max(len(line) - len(line.lstrip()) for line in md("<ul><li>x" * 100).split("\n"))
    assert deepest <= 2 * blocks.MAX_INDENT


def test_tags_are_read_as_browsers_read_them() -> None:
    found = list(tokens("""a<A HREF="x>y" b='1' c=2 d e="&lt;"/>b</A ><!-->c--><?pi?></3>d<e"""))
    assert [token if isinstance(token, str) else (token.name, token.closes) for token in found] == [
        "a", ("a", False), "b", ("a", True), "c-->", "d",
    ]  # fmt: skip
    tag = found[1]
    assert isinstance(tag, Tag)
    assert tag.attributes() == {"href": "x>y", "b": "1", "c": "2", "d": "", "e": "<"}
