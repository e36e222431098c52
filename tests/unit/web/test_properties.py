"""For every text: an address has one reading, which all who read it share, and no page breaks the converter."""

from __future__ import annotations

import json
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.policy import matching
from sidecar.tools.web.addresses import AddressRefused, Target, parse_url
from sidecar.tools.web.keypath import PathNotFound, format_value, select
from sidecar.tools.web.markdown import to_markdown


def pieces(text: str) -> list[str]:
    return text.split()


PIECES = [
    *pieces(
        "http https HTTP file : // / \\ @ ? # %2f %40 % [ ] ::1 ::ffff: 127.0.0.1 0x7f 1 0 127 localhost"
    ),
    *pieces("public.test a - _ . 。 ① ä ß \u0430 :80 :443 :99999 é xn-- { | ' < \""),
    *(" ", "\t", "\n", "\0", "\u200d", "\ud800"),
]
ADDRESSES = (
    st.lists(st.sampled_from(PIECES), max_size=8)
    .map("".join)
    .flatmap(lambda text: st.sampled_from([text, f"http://{text}", f"https://{text}/"]))
)
TAGS = [
    *pieces(
        "< > </ /> <!-- --> <! <? = \" ' & &amp; &#x0; &#55296; a é <p> </p> <div> </div> <ul> <li> </ul> <table>"
    ),
    *pieces(
        "<tr> </td> </table> <pre> </pre> </code> <b> </b> <i> <h1> </h1> <script> </script> <style> <title>"
    ),
    *pieces(
        "</title> </a> <blockquote> </blockquote> <br> <hr> <main> </main> <article> <nav> </nav> <dl> <dt> <dd>"
    ),
    *pieces("<svg> </svg> <textarea> <template>"),
    *("<ol start=99999999999>", "<td colspan=9999>", "<code class='language-x'>", "<a href='//x y'>"),
    *("<a href=http://[>", "<img alt=x>", "<base href='http://[bad'>", "<input type=checkbox>", "<p hidden>"),
    *(" ", "\n", "\0"),
]
HTML = st.lists(st.sampled_from(TAGS), max_size=40).map("".join)
LEAVES = st.none() | st.integers() | st.text(max_size=9)
DOCUMENTS = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner))


def read(url: str) -> Target | None:
    try:
        return parse_url(url)
    except AddressRefused:
        return None


@settings(max_examples=400, deadline=None)
@given(ADDRESSES)
def test_an_address_has_one_reading(url: str) -> None:
    target = read(url)
    if target is None:
        return
    assert read(target.url) == target
    by_rules, by_python = matching.parse_address(target.url), urlsplit(target.url)
    assert by_rules is not None
    assert (by_rules.scheme, by_rules.place) == (target.scheme, target.place)
    assert (by_python.hostname, by_python.port or {"http": 80, "https": 443}[target.scheme]) == (
        target.host,
        target.port,
    )
    assert target.url.isascii()
    assert target.url.isprintable()
    assert " " not in target.url


@settings(max_examples=200, deadline=None)
@given(ADDRESSES)
def test_a_redirect_leads_to_an_address_or_nowhere(location: str) -> None:
    try:
        following = parse_url("https://public.test/a/b?c").redirect_target(location)
    except AddressRefused:
        return
    assert read(following.url) == following


@settings(max_examples=400, deadline=None)
@given(HTML)
def test_no_html_fails(html: str) -> None:
    found = to_markdown(html, "https://public.test/a/")
    assert found.text == found.text.strip("\n")
    assert "\0" not in found.text


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_a_document_that_is_laid_out_is_the_same_document(document: object) -> None:
    if isinstance(document, dict | list):
        assert json.loads(format_value(document)) == document


@settings(max_examples=200, deadline=None)
@given(st.text("ab.[]*\"'0-9$ ", max_size=20))
def test_any_path_finds_something_or_says_why_not(path: str) -> None:
    with suppress(PathNotFound):
        select({"a": [{"b": 1}], "0": {}}, path)


@pytest.mark.parametrize(
    "url", ["http://bücher.example/", "http://xn--bcher-kva.example/", "HTTP://BÜCHER.example./"]
)
def test_a_host_of_other_letters_is_asked_by_its_dns_name(url: str) -> None:
    assert parse_url(url).url == "http://xn--bcher-kva.example/"
