"""How rules are spelled and what they speak of; rules that give leave are read narrowly, others widely."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.failures import Refused
from sidecar.policy import matching
from sidecar.policy.commands import parse_command
from sidecar.policy.rules import checked_rule, parse_rule_text, rule_text

GOOD: dict[str, Any] = {"id": "r1", "scope": "user", "effect": "allow", "kind": "run", "pattern": "git log *"}


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "run(git log *)",
        "run(=a && b (c))",
        "edit(src/**)",
        "read(docs/)",
        "fetch(*.example.com)",
        "fetch(https://a.b/c/*)",
        "mcp(github/*)",
        "app-tool(notes/search)",
    ],
)
def test_a_rule_is_printed_as_it_was_read(text: str) -> None:
    assert rule_text(*parse_rule_text(text)) == text


@pytest.mark.parametrize(
    "text", ["", "run", "run()", "run(git", "walk(x)", "Run(x)", " run(x)", "*(x)", "allow run(x)"]
)
def test_what_is_no_rule_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match=r"`rule`: .*as in run\(git log \*\)"):
        parse_rule_text(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scope": "all"}, "`scope`: must be one of chat, project, user"),
        ({"effect": "maybe"}, "`effect`: must be one of allow, ask, deny"),
        ({"kind": "walk"}, "`kind`: must be one of read, edit, run"),
        ({"source": "x"}, "`source`: must be one of app, answer, file"),
        ({"id": ""}, "`id`: must be text"),
        ({"folder": "a\0"}, "`folder`: must be a folder"),
        ({"pattern": ""}, "`pattern`: must say what the rule speaks of"),
        ({"pattern": "="}, "`pattern`: must say what the rule speaks of"),
        ({"pattern": "a" * 1025}, "`pattern`: has more than 1024 characters"),
        ({"pattern": "=" + "a" * 16385}, "`pattern`: has more than 16384 characters"),
        ({"pattern": "a\u200bb"}, "`pattern`: has control or invisible characters"),
        ({"pattern": "a; b"}, "`pattern`: must be the plain words of one command"),
        ({"pattern": 'a "b c"'}, "`pattern`: must be the plain words of one command"),
        ({"kind": "*", "pattern": "x"}, "`pattern`: must be \\* for a rule of every kind"),
        ({"kind": "edit", "pattern": "a\\b"}, "`pattern`: has a backslash"),
        ({"kind": "edit", "pattern": "!a"}, "`pattern`: begins with !"),
        ({"kind": "edit", "pattern": "../a"}, "`pattern`: must be relative to the project"),
        ({"kind": "edit", "pattern": "a**"}, "`pattern`: has \\*\\* within a name"),
        ({"kind": "fetch", "pattern": "a@b"}, "`pattern`: must be a host or an address without user name"),
        ({"kind": "fetch", "pattern": "ftp://a"}, "`pattern`: must begin with http:// or https://"),
        ({"kind": "fetch", "pattern": "exa*.com"}, "`pattern`: must be a host"),
        ({"kind": "mcp", "pattern": "a/b/c"}, "`pattern`: must be server/tool"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=f"^{message}"):
        checked_rule(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("pattern", "narrow", "wide", "neither"),
    [
        ("src/**", "src/a src/a/b", "", "src a/src/b srcx/a ../src/a"),
        ("src/*", "src/a src/.a", "src/a/b", "src a/src/b"),
        ("*.md", "a.md a/b.md .md", "a.md/b /x/a.md A.MD", "a.mdx a.m"),
        ("docs/", "docs/a a/docs/b docs/a/b", "docs Docs/a", "docsx/a mydocs/a"),
        ("a/docs/", "a/docs/b", "a/docs", "b/a/docs/c"),
        ("docs", "docs a/docs", "docs/a", "docsx"),
        ("./a.md", "a.md", "a.md/b", "b/a.md"),
        ("**/a", "a b/a b/c/a", "a/b", "ab"),
        ("a/**/b", "a/b a/x/b a/x/y/b", "a/b/c", "a b xa/b"),
        ("/srv/x/**", "/srv/x/a", "", "srv/x/a /srv/x"),
        ("**", "a a/b .a /x/y", "../a", ""),
        ("*", "a a/b /x/y", "", ""),
        ("a?c", "abc x/a-c", "abc/d", "ac abbc"),
        ("a[b]", "a[b]", "", "ab"),
        ("**/*.a/**/*.a", "x.a/y.a z/x.a/b/y.a", "", "y.a"),
    ],
)
def test_globs_of_paths(pattern: str, narrow: str, wide: str, neither: str) -> None:
    paths = [*narrow.split(), *wide.split(), *neither.split()]
    assert [path for path in paths if matching.path_matches(pattern, path)] == narrow.split()
    assert [path for path in paths if matching.path_may_match(pattern, path)] == [
        *narrow.split(),
        *wide.split(),
    ]


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("git", "git", True),
        ("git", "git log", False),
        ("git log *", "git log", True),
        ("git log *", "git log -3 x", True),
        ("git log *", "git logs", False),
        ("npm run test:*", "npm run test:a", True),
        ("npm run test:*", "npm run test:a b", False),
        ("npm run test:*", "npm run test:a/../b", False),
        ("cat src/*", "cat src/a", True),
        ("cat src/*", "cat src/../b", False),
        ("cp * b", "cp a b", True),
        ("cp * b", "cp a c", False),
        ("./scripts/*", "./scripts/a", True),
        ("./scripts/*", "./scripts/a/b", False),
        ("* --version", "git --version", True),
        ("* --version", "./git --version", False),
        ("*", "anything at all", True),
    ],
)
def test_words_of_a_command_that_is_allowed(pattern: str, line: str, matches: bool) -> None:
    assert matching.words_match(pattern, line.split()) is matches


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("git push *", "git push", True),
        ("git push *", "ls; git push origin", True),
        ("git push *", "/usr/bin/git push", True),
        ("git push *", "GIT push", True),
        ("git push *", "git pull; echo push", False),
        ("git push *", "git commit -m 'git push'", False),
        ("git push *", "git -C x push", True),
        ("git push *", "sudo git push", True),
        ("git push *", "bash -c 'cd x; git push'", True),
        ("git push *", "x=$(git push)", True),
        ("git push *", "if a; then git push; fi", True),
        ("rm *", "{rm,-rf,x}", True),
        ("rm *", "rm${IFS}-rf", True),
        ("rm *", "r\\m x", True),
        ("rm *", "'r'm $x", True),
        ("rm *", "find . | xargs rm", True),
        ("rm *", "trim $x", False),
        ("rm", "rm x", False),
    ],
)
def test_words_of_a_command_that_is_stopped(pattern: str, line: str, matches: bool) -> None:
    assert matching.command_may_match(pattern, line, parse_command(line)) is matches


@pytest.mark.parametrize(
    ("pattern", "url", "narrow", "wide"),
    [
        ("example.com", "https://example.com/a?b#c", True, True),
        ("example.com", "http://EXAMPLE.com./", True, True),
        ("example.com", "https://example.com:443/", True, True),
        ("example.com", "https://example.com:8443/", False, True),
        ("example.com:8443", "https://example.com:8443/", True, True),
        ("example.com", "https://example.com.evil.net/", False, False),
        ("example.com", "https://evilexample.com/", False, False),
        ("example.com", "https://a.example.com/", False, False),
        ("example.com", "https://example.com@evil.net/", False, True),
        ("example.com", "https://evil.net/example.com", False, False),
        ("example.com", "https://evil.net\\@example.com/", False, True),
        ("example.com", "https://example.com\t.evil.net/", False, True),
        ("example.com", "https://ex\u0430mple.com/", False, False),
        ("example.com", "file://example.com/x", False, True),
        ("*.example.com", "https://a.b.example.com/", True, True),
        ("*.example.com", "https://example.com/", False, False),
        ("*.example.com", "https://evil.net/.example.com", False, False),
        ("https://example.com/docs/*", "https://example.com/docs/a/b?c", True, True),
        ("https://example.com/docs/*", "http://example.com/docs/a", False, False),
        ("https://example.com/docs/*", "https://example.com/doc", False, False),
        ("https://example.com/docs/*", "https://example.com/docs/../x", False, True),
        ("https://example.com/docs/*", "https://example.com/docs/%2e%2e/x", False, True),
        ("https://example.com/docs/*", "https://example.com/docs/%252e%252e/x", False, True),
        ("https://example.com/docs/*", "https://example.com/%64ocs/a", False, True),
        ("https://example.com/docs/*", "https://example.com//docs/a", False, True),
        ("https://example.com/docs/*", "https://example.com/x/../docs/a", False, True),
        ("bücher.example", "https://xn--bcher-kva.example/", True, True),
        ("*.Bücher.example", "https://a.xn--bcher-kva.example/", True, True),
        ("*", "https://example.com/", True, True),
        ("*", "javascript:x", False, True),
        ("[::1]:8080", "http://[::1]:8080/", True, True),
    ],
)
def test_addresses(pattern: str, url: str, narrow: bool, wide: bool) -> None:
    assert (matching.url_matches(pattern, url), matching.url_may_match(pattern, url)) == (narrow, wide)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("github/*", "github/search", True),
        ("github/*", "github/a/b", True),
        ("github/*", "gitlab/search", False),
        ("github/get_*", "github/get_file", True),
        ("github/get_*", "github/delete", False),
        ("*/search", "a/search", True),
        ("*/search", "a/b/search", False),
        ("notes", "notes", True),
        ("notes", "notes/search", False),
        ("*", "any/thing", True),
    ],
)
def test_tools(pattern: str, name: str, matches: bool) -> None:
    assert matching.tool_matches(pattern, name) is matches


@given(st.text("ab/*?.", max_size=12), st.text("ab/.", max_size=12))
def test_what_gives_leave_for_a_path_would_also_stop_it(pattern: str, path: str) -> None:
    if pattern and matching.path_matches(pattern, path):
        assert matching.path_may_match(pattern, path)
