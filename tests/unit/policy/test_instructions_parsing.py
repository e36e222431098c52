"""What a file with a rule says, in each format; what is malformed is refused in words that say where and why."""

from __future__ import annotations

import string
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.policy.instructions.parsing import MAX_DEPTH, MAX_PATTERNS, Format, ParsedRule, parse_rule
from sidecar.policy.instructions.rule import MalformedRule
from tests.unit.policy.instructions import one_rule

WHOLE = ParsedRule(
    "Write tests first.",
    name="Tests first",
    applies="glob",
    globs=("src/**/*.py", "{a,b}.ts"),
    priority=7,
    metadata={"owner": "me", "tags": ["x", 2], "since": 1.5, "draft": False, "description": "Why: so."},
    handler="bin/rule --fast",
)

MARKDOWN = """\
---
# All keys that there are.
name: "Tests first"
description: Why: so.
globs:
  - src/**/*.py
  - '{a,b}.ts'   # braces are one pattern
priority: 7
handler: bin/rule --fast
metadata:
  owner: me
  tags: [x, 2]
  since: 1.5
  draft: false
---

Write tests first.
"""

YAML = """\
name: Tests first
description: "Why: so."
globs: ["src/**/*.py", "{a,b}.ts"]
priority: 7
handler: bin/rule --fast
metadata: {owner: me, tags: [x, 2], since: 1.5, draft: false}
instruction: |
  Write tests first.
"""

JSON = msgspec.json.encode(
    {
        "name": "Tests first",
        "description": "Why: so.",
        "globs": ["src/**/*.py", "{a,b}.ts"],
        "priority": 7,
        "handler": "bin/rule --fast",
        "metadata": {"owner": "me", "tags": ["x", 2], "since": 1.5, "draft": False},
        "instruction": "Write tests first.",
    }
).decode()


def own(file: str, text: str) -> ParsedRule:
    return parse_rule(file, text.encode(), "own")


def why(file: str, text: str, format: Format = "own") -> str:
    with pytest.raises(MalformedRule) as caught:
        parse_rule(file, text.encode(), format)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "text"), [("a.md", MARKDOWN), ("a.yaml", YAML), ("a.YML", YAML), ("a.json", JSON)]
)
def test_every_format_says_the_same(file: str, text: str) -> None:
    assert own(file, text) == WHOLE


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_and_byte_order_marks_do_not_matter(ends: str) -> None:
    text = MARKDOWN.replace("\n", ends)
    for data in (text.encode("utf-8-sig"), text.encode("utf-16")):
        assert parse_rule("a.md", data, "own") == WHOLE


@pytest.mark.parametrize(
    ("head", "applies"),
    [
        ("priority: 1", "always"),
        ("applies: always\nglobs: '*.py'", "always"),
        ("globs: '*.py'", "glob"),
        ("words: [test]", "word"),
        ("alwaysApply: true\nglobs: '*.py'", "always"),
        ("alwaysApply: false\nglobs: '*.py'", "glob"),
        ("applies: word\nglobs: '*.py'\nwords: test", "word"),
    ],
)
def test_when_a_rule_applies_is_said_or_follows_from_what_it_has(head: str, applies: str) -> None:
    assert own("a.md", f"---\n{head}\n---\nx").applies == applies


@pytest.mark.parametrize(
    ("head", "applies", "globs", "words"),
    [
        ("globs: *.ts,src/{a,b}/*.tsx\nalwaysApply: false", "glob", ("*.ts", "src/{a,b}/*.tsx"), ()),
        ("globs: ['*.ts', docs/]", "glob", ("*.ts", "docs/**"), ()),
        ("description: x\nglobs:\nalwaysApply: true", "always", (), ()),
        ("description: Use it for: tables\nglobs:\nalwaysApply: false", "word", (), ("@tables",)),
    ],
)
def test_cursors_rules_are_understood(
    head: str, applies: str, globs: tuple[str, ...], words: tuple[str, ...]
) -> None:
    said = parse_rule("tables.mdc", f"---\n{head}\n---\nText.".encode(), "cursor")
    assert (said.text, said.applies, said.globs, said.words) == ("Text.", applies, globs, words)


def test_a_foreign_rule_has_no_handler_and_no_priority() -> None:
    said = parse_rule("a.mdc", b"---\nhandler: rm -rf x\npriority: 9\n---\nText.", "cursor")
    assert (said.handler, said.priority, said.metadata) == (None, 0, {"handler": "rm -rf x", "priority": 9})


def test_only_our_own_rules_are_templates(tmp_path: Path) -> None:
    assert one_rule(tmp_path / "a", ".sidecar/rules/a.md", "{path}").template
    assert not one_rule(tmp_path / "b", "AGENTS.md", "{path}").template
    assert not one_rule(tmp_path / "c", ".cursor/rules/a.mdc", "{path}").template


def test_plain_files_are_text_whatever_they_begin_with() -> None:
    text = "---\nname: [x\n---\nBody"
    assert parse_rule("AGENTS.md", text.encode(), "plain") == ParsedRule(text)


MALFORMED = {
    "---\nname: x": "the front matter is not closed: a line `---` must end it",
    "---\nname x\n---\nT": "line 2: `key: value` or `- item` was expected",
    "---\n\n- x\n---\nT": "line 3: it belongs to no key above it",
    "---\nname: x\n  more: y\n---\nT": "line 3: it belongs to no key above it",
    "---\nname: x\nname: y\n---\nT": "line 3: `name` is there twice",
    "---\nmetadata:\n\ta: b\n---\nT": "line 3: a tab cannot indent, use blanks",
    "---\nglobs: [a, b\n---\nT": "line 2: the list is not closed on its line; quote text that begins with `[`",
    '---\nname: "x\n---\nT': "line 2: the quote is not closed, or something follows it",
    '---\nname: "\\q"\n---\nT': "line 2: the escapes in quotes are those of JSON, such as \\n or \\u00e9",
    "---\nname: |\n  x\n---\nT": "line 2: text over several lines is not understood here; put the value into quotes",
    "---\nname: &a x\n---\nT": "line 2: an anchor is not understood here; put the value into quotes",
    "---\nname: !!str x\n---\nT": "line 2: a tag is not understood here; put the value into quotes",
    "---\nglob: x\n---\nT": "there is no field `glob`; did you mean `globs`?",
    "---\npriority: high\n---\nT": "`priority`: expected `int | null`, got `str`; allowed: an integer or null",
    "---\npriority: 1000001\n---\nT": "`priority` must be from -1000000 to 1000000",
    "---\napplies: often\n---\nT": (
        '`applies`: invalid enum value \'often\'; allowed: one of "always", "glob", "word" or null'
    ),
    "---\napplies: glob\n---\nT": "it applies by glob and has none: name them in `globs`",
    "---\napplies: word\n---\nT": "it applies by word and has none: name them in `words`",
    "---\nglobs: x\nwords: y\n---\nT": "it has globs and words: say which by `applies: glob` or `applies: word`",
    "---\nglobs: '!x'\n---\nT": "`globs`: `!x` excludes, and a pattern can only include",
    "---\nglobs: 'a['\n---\nT": "`globs`: `a[`: a bracket is not closed",
    "---\nwords: ['...']\n---\nT": "`words`: each needs a letter or a digit, and has 200 characters at most",
    f"---\nwords: [{','.join(['x'] * 65)}]\n---\nT": f"`words`: there are 65, more than {MAX_PATTERNS}",
    '---\nname: "a\\nb"\n---\nT': "`name` must be one line of at most 200 characters",
    "---\nhandler: 'python:'\n---\nT": "`handler` must be one command line, or `python:` and an entry point's name",
    "---\ninstruction: x\n---\nT": "`instruction` and the text beneath the front matter say the same: keep one",
    "---\nname: x\n---\n\n": "it has no instruction: write what the model is to do",
    "": "it has no instruction: write what the model is to do",
}


@pytest.mark.parametrize(("text", "reason"), MALFORMED.items())
def test_a_malformed_markdown_rule_says_why(text: str, reason: str) -> None:
    assert why("a.md", text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not JSON: Input data was truncated"),
        ("[]", "it must hold one rule: keys such as `instruction`, and their values"),
        ('{"instruction": 1}', "`instruction`: expected `str | null`, got `int`; allowed: a string or null"),
        (
            '{"instruction": "x", "metadata": {"a": 1e999}}',
            "it is not JSON: Number out of range - at `$[...][...]`",
        ),
        ('{"instruction": "a\\u0000"}', "it has characters that are no text: NUL, or halves of a pair"),
        ("[" * 5000, f"its lists and maps are nested more than {MAX_DEPTH} levels deep"),
        ("[" * 20 + "]" * 20, f"its lists and maps are nested more than {MAX_DEPTH} levels deep"),
    ],
)
def test_a_malformed_json_rule_says_why(text: str, reason: str) -> None:
    assert why("a.json", text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- x", "it must hold one rule: keys such as `instruction`, and their values"),
        ("x: &a 1\ny: *a", "line 2: aliases are not understood; quote the value"),
        ("x: !!python/object/apply:os.system [id]", "line 1: tags are not understood; quote the value"),
        ("instruction: x\nmetadata: {1: 2}", "a key must be text: put '1' into quotes"),
        ("instruction: x\nmetadata: {a: .nan}", "a value is neither text, number, list nor map: 'nan'"),
        (
            "instruction: x\nmetadata: {a: 2024-99-99}",
            "a date or a number is none: month must be in 1..12; quote the value",
        ),
        ("[" * 5000, f"its lists and maps are nested more than {MAX_DEPTH} levels deep"),
    ],
)
def test_a_malformed_yaml_rule_says_why(text: str, reason: str) -> None:
    assert why("a.yaml", text) == reason


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [}", 1), ("a: 1\n b: 2", 2), ("x: 1\nglobs: *.ts", 2), ("a: 1\n---\na: 2", 2), ('"\\q"', 1)],
)
def test_what_is_not_yaml_says_on_which_line(text: str, line: int) -> None:
    assert why("a.yaml", text).startswith(f"line {line}: it is not YAML: ")


def test_a_date_in_yaml_becomes_text() -> None:
    assert own("a.yaml", "instruction: x\nmetadata: {since: 2024-02-03}").metadata == {"since": "2024-02-03"}


PIECES = st.lists(
    st.sampled_from(
        [*"-:#'\"[]{},*&!|>@`\\ \n\t~", "---\n", "name", "globs", "metadata", "applies", ": ", "  ", "1"]
    )
    | st.text(string.printable, max_size=3)
    | st.text(max_size=2)
)


@settings(max_examples=400, deadline=None)
@given(PIECES, st.sampled_from(["a.md", "a.json", "a.yaml", "a.mdc"]), st.booleans())
def test_any_text_is_a_rule_or_malformed_and_what_is_read_travels(
    pieces: list[str], file: str, headed: bool
) -> None:
    text = "".join(pieces)
    data = (f"---\n{text}\n---\nBody." if headed else text).encode("utf-8", "surrogatepass")
    try:
        said = parse_rule(file, data, "cursor" if file == "a.mdc" else "own")
    except MalformedRule:
        return
    assert msgspec.json.decode(msgspec.json.encode(said), type=ParsedRule) == said


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["a.md", "a.json", "a.yaml"]))
def test_any_bytes_are_a_rule_or_malformed(data: bytes, file: str) -> None:
    with suppress(MalformedRule):
        assert parse_rule(file, data, "own").text
