"""Which rules apply to a prompt: always, by the paths in play, by words in any language; and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.model.figures import RuleUse
from sidecar.policy.instructions import Instruction, choose_rules, read_rules, record_use
from sidecar.policy.instructions.choosing import MAX_PROMPT_READ
from sidecar.policy.instructions.freshness import MAX_KEPT
from sidecar.workspace.paths import Workspace
from tests.unit.policy.instructions import lay_out


def by_glob(*globs: str, folder: str = "") -> Instruction:
    return Instruction("r.md", "r", "project", applies="glob", globs=globs, text="x", folder=folder)


def by_word(*words: str) -> Instruction:
    return Instruction("r.md", "r", "project", applies="word", words=words, text="x")


def applies(rule: Instruction, prompt: str = "", *paths: str) -> bool:
    return choose_rules([rule], prompt, paths) == [rule]


@pytest.mark.parametrize(
    ("glob", "path", "holds"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/**/*.ts", "src/a.ts", True),
        ("src/**/*.ts", "src/a/b/c.ts", True),
        ("src/**/*.ts", "lib/src/a.ts", False),
        ("**/test_*.py", "tests/x/test_a.py", True),
        ("{src,lib}/*.{ts,tsx}", "lib/a.tsx", True),
        ("{src,lib}/*.{ts,tsx}", "lib/a.js", False),
        ("docs/**", "docs/a/b.md", True),
        ("docs/**", "docs", False),
        ("**", "any/thing", True),
        ("*.py", "./src/a.py", True),
        ("*.MD", "a.md", False),
    ],
)
def test_a_rule_by_glob_applies_to_the_paths_that_match(glob: str, path: str, holds: bool) -> None:
    assert applies(by_glob(glob), "", "other/unlike", path) is holds


def test_a_rule_by_glob_applies_to_no_path_when_none_is_in_play() -> None:
    assert not applies(by_glob("**"), "change a.py")


@pytest.mark.parametrize(
    ("word", "prompt", "holds"),
    [
        ("test", "Write a TEST, please", True),
        ("test", "the latest contest is testing", False),
        ("test", "test", True),
        ("test", "run_test", False),
        ("test*", "we are testing", True),
        ("unit test", "a unit\n  test would do", True),
        ("c++", "is it C++?", True),
        ("c", "is it C++?", True),
        (".env", "read the .env file", True),
        ("@tables", "see @tables for it", True),
        ("@tables", "see the tables", False),
        ("datenbank", "Öffne die Datenbank!", True),
        ("datenbank", "die Datenbankverbindung", False),
        ("straße", "in der STRASSE", True),
        ("migración", "haz la migracio\u0301n", True),
        ("migracion", "haz la migración", False),
        ("déployer", "Il faut DÉPLOYER", True),
        ("тест", "напиши ТЕСТ", True),
        ("тест", "напиши тесты", False),
        ("数据库", "请检查数据库连接", True),
        ("数据库", "请检查数据", False),
        ("データ", "ﾃﾞｰﾀをベースに", True),
        ("테스트", "테스트를 작성해", True),
        ("ทดสอบ", "ช่วยทดสอบหน่อย", True),
        ("परीक्षण", "एक परीक्षण लिखो", True),
        ("पर", "एक परीक्षण लिखो", False),
        ("api", "这个API怎么用", True),
        ("ｔｅｓｔ", "a test", True),
    ],
)
def test_a_rule_by_word_applies_when_the_prompt_has_the_word(word: str, prompt: str, holds: bool) -> None:
    assert applies(by_word("unlikely", word), prompt) is holds


def test_words_are_looked_for_at_both_ends_of_a_long_prompt() -> None:
    pasted = "log line\n" * MAX_PROMPT_READ
    assert applies(by_word("deploy"), f"deploy this: {pasted}")
    assert applies(by_word("deploy"), f"{pasted} deploy this")
    assert not applies(by_word("deploy"), f"{pasted} deploy this {pasted}")


def test_a_nested_rule_applies_only_to_what_is_beneath_its_folder() -> None:
    nested = Instruction("web/AGENTS.md", "AGENTS.md", "project", text="x", folder="web")
    assert applies(nested, "", "web/ui/a.ts")
    assert applies(nested, "", "web")
    for elsewhere in ("website/a.ts", "server/web/a.ts", "a.ts", "Web/a.ts"):
        assert not applies(nested, "", elsewhere)
    assert not applies(nested, "work on web/ui")


def test_the_globs_of_a_nested_rule_begin_at_its_folder() -> None:
    rule = by_glob("src/*.ts", folder="web")
    assert applies(rule, "", "web/src/a.ts")
    assert not applies(rule, "", "src/a.ts")
    assert not applies(by_glob("**", folder="web"), "", "web")


def test_a_rule_with_a_problem_or_without_words_is_not_chosen() -> None:
    broken = Instruction("a.md", "a", "project", text="x", problem="it is broken")
    empty = Instruction("b.md", "b", "project")
    handled = Instruction("c.md", "c", "project", handler="bin/rule")
    assert choose_rules([broken, empty, handled], "", []) == [handled]


def test_the_order_is_priority_then_project_then_path(tmp_path: Path) -> None:
    project = lay_out(
        tmp_path / "project",
        {
            "AGENTS.md": "agents",
            ".sidecar/rules/low.md": "---\npriority: -1\n---\nlow",
            ".sidecar/rules/high.md": "---\npriority: 5\n---\nhigh",
            "web/AGENTS.md": "web",
        },
    )
    user = lay_out(tmp_path / "user", {"a.md": "a", "top.md": "---\npriority: 5\n---\ntop"})
    rules = read_rules(Workspace(str(project)), str(user), ["web/x"])
    for given in (rules, rules[::-1]):
        texts = [rule.text for rule in choose_rules(given, "", ["web/x"])]
        assert texts == ["high", "top", "agents", "web", "a", "low"]


def test_figures_count_what_was_sent_and_tell_what_changed() -> None:
    a, b = (Instruction(f"{name}.md", name, "project", text="one two", hash="1") for name in "ab")
    changed = Instruction("a.md", "a", "project", text="one two three", hash="2")
    figures = record_use({}, [a], 1000, words)
    figures = record_use(figures, [a, b], 2000, words)
    assert record_use(figures, [changed], 3000, words) == {
        "a.md": RuleUse(loadCount=3, lastSeen=3000, lastChanged=3000, tokens=3, hash="2"),
        "b.md": RuleUse(loadCount=1, lastSeen=2000, lastChanged=2000, tokens=2, hash="1"),
    }
    assert figures["a.md"] == RuleUse(loadCount=2, lastSeen=2000, lastChanged=1000, tokens=2, hash="1")


def test_figures_of_the_longest_unseen_rules_are_let_go() -> None:
    rules = [Instruction(f"{number}.md", "", "user", hash="1") for number in range(MAX_KEPT)]
    figures = record_use(record_use({}, rules, 1, words), rules[:1], 2, words)
    figures = record_use(figures, [Instruction("new.md", "", "user", hash="1")], 3, words)
    assert len(figures) == MAX_KEPT
    assert ("0.md" in figures, "1.md" in figures) == (True, False)


def words(text: str) -> int:
    return len(text.split())
