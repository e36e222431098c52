"""The gates: which blocks a prompt opens, by which name, in which order, and how often they are right."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.context.gates import structure
from sidecar.context.gates.decide import (
    Gates,
    PromptContext,
    decide_gates,
    is_open,
)
from sidecar.context.gates.terms import uncovered_terms
from sidecar.context.phrases import rules
from sidecar.model.chats import GateSwitch, GateSwitches
from sidecar.text.folding import fold_text
from tests.unit.context import gate_scores
from tests.unit.context.gate_scores import BLOCKS, GATES, HALVES, Decide, Labelled

FILES = ("src/orders.py", "web/cart.ts", "docs/Shipping Notes.md", "Makefile", "app/price_rules.rb")
AIM = 0.92

TRACES = {
    "Python": 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: no',
    "JavaScript": "TypeError: x is not a function\n    at run (/srv/a.js:10:5)\n    at /srv/b.js:1:1",
    "Java": "java.lang.IllegalStateException: no\n\tat com.shop.Cart.add(Cart.java:12)",
    "Go": "panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\nmain.main()",
    "Rust": "thread 'main' panicked at src/main.rs:2:5:\nexplicit panic",
    "C#": "System.Exception: no\n   at Shop.Cart.Add(Item item) in C:\\shop\\Cart.cs:line 12",
    "Ruby": "cart.rb:7:in `add': undefined method (NoMethodError)\n\tfrom main.rb:2:in `<main>'",
    "PHP": "PHP Fatal error:  Uncaught Exception: no in /srv/a.php:3\nStack trace:\n#0 /srv/b.php(9): f()",
    "Swift": "Shop/Cart.swift:12: Fatal error: Index out of range",
}


def scene(prompt: str, **known: object) -> PromptContext:
    settings: dict[str, object] = {"open_files": FILES, "patched": ("lib/stock.py",), "has_outputs": True}
    return PromptContext(prompt=prompt, **{**settings, **known})  # type: ignore[arg-type]


def gates(prompt: str, **known: object) -> Gates:
    return decide_gates(scene(prompt, **known))


@pytest.mark.parametrize(
    ("prompt", "known", "gate"),
    [
        ("what does src/orders.py do?", {"file_tool_in_last_3_turns": True}, "mention"),
        ("refactor this function", {"file_tool_in_last_3_turns": True}, "code-intent"),
        ("go on", {"file_tool_in_last_3_turns": True, "pinned": frozenset(FILES[:1])}, "recent-activity"),
        ("take it from the current context", {"pinned": frozenset(FILES[:1])}, "explicit"),
        ("tell me a joke", {"pinned": frozenset(FILES[:1])}, "pinned"),
        ("tell me a joke", {}, None),
        ("what does src/orders.py do?", {"open_files": ()}, None),
        ("what does tokenize do?", {}, "code-intent"),
        ("what does photosynthesis do?", {}, None),
        ("there's a bug somewhere", {}, "code-intent"),
        ("there's a bug on my salad", {}, None),
        ("do not use the open files", {}, None),
        ("do not use the open files", {"pinned": frozenset(FILES[:1])}, "pinned"),
        ("do not use the open files, src/orders.py will do", {}, "mention"),
        ("do not use the open files", {"file_tool_in_last_3_turns": True}, None),
        ("without reading the files twice, sum their sizes in this function", {}, "code-intent"),
        ("lies die Dateien nicht doppelt ein in dieser Funktion", {}, "code-intent"),
        ("open a file in Excel", {}, None),
    ],
)
def test_open_files_are_opened_by_the_first_gate_that_holds(
    prompt: str, known: dict[str, object], gate: str | None
) -> None:
    found = gates(prompt, identifiers=frozenset({"tokenize"}), **known)
    assert (found.open_files, found.pinned_only) == (gate, gate == "pinned")


@pytest.mark.parametrize(
    ("prompt", "known", "gate"),
    [
        ("what did you change?", {}, "asks-about-changes"),
        ("rename the counter in lib/stock.py", {}, "edit-intent"),
        ("now make it faster", {"last_turn_edited": True}, "edit-intent"),
        ("continue editing lib/stock.py", {}, "edit-intent"),
        ("edit lib/stock.py again", {}, "edit-intent"),
        ("keep going", {"last_turn_edited": True}, "edit-intent"),
        ("keep going", {}, None),
        ("refactor the function to use a generator", {"last_turn_edited": True}, "edit-intent"),
        ("speed up tokenize", {"patched_identifiers": frozenset({"tokenize"})}, "edit-intent"),
        ("speed up tokenize", {}, None),
        ("why did you alter the loop?", {}, "asks-about-changes"),
        ("write a commit message", {}, "asks-about-changes"),
        ("Fasse zusammen, was sich geändert hat", {}, "asks-about-changes"),
        ("what did you change? no diffs please", {}, None),
        ("the change in the till", {}, None),
        ("rename the counter in src/orders.py", {}, None),
        ("what is in lib/stock.py?", {}, None),
        ("what did you change?", {"patched": ()}, None),
    ],
)
def test_diffs_are_opened_by_questions_about_changes_and_by_edits_of_a_patched_file(
    prompt: str, known: dict[str, object], gate: str | None
) -> None:
    assert gates(prompt, identifiers=frozenset({"tokenize"}), **known).patches == gate


@pytest.mark.parametrize(
    ("prompt", "known", "candidate"),
    [
        ("what is in lib/stock.py?", {"open_files": ("lib/stock.py",)}, True),
        ("what is in src/orders.py?", {}, False),
        ("does it handle that too?", {"last_turn_edited": True}, True),
        ("does it handle that too?", {}, False),
        ("what did you change in lib/stock.py?", {"open_files": ("lib/stock.py",)}, False),
    ],
)
def test_diffs_may_use_spare_room_when_a_patched_file_or_the_last_edits_are_involved(
    prompt: str, known: dict[str, object], candidate: bool
) -> None:
    assert gates(prompt, **known).patches_if_space is candidate


@pytest.mark.parametrize(
    ("prompt", "known", "gate", "wanted"),
    [
        ("what did I change?", {"patched": ()}, "ledger-empty-my-changes", "stat"),
        ("review my changes", {"patched": ()}, "ledger-empty-my-changes", "diff"),
        ("try once more", {"last_command_failed": True, "drifted": True}, "failure-after-drift", "stat"),
        ("why do the tests fail now?", {"drifted": True}, "failure-after-drift", "stat"),
        ("why do the tests fail now?", {}, None, None),
        ("what happens if the build fails?", {"drifted": True}, None, None),
        ("the tests pass again", {"drifted": True}, None, None),
        ("review my changes, but no diffs", {"patched": ()}, None, None),
        ("try once more", {"last_command_failed": True}, None, None),
        ("try once more", {"drifted": True}, None, None),
        ("look at git diff --staged", {}, "explicit", "diff"),
        ("what is still uncommitted?", {}, "explicit", "stat"),
        ("what did I change?", {}, None, None),
        ("how do I use git diff in general?", {}, None, None),
    ],
)
def test_git_is_asked_by_its_three_gates_alone(
    prompt: str, known: dict[str, object], gate: str | None, wanted: str | None
) -> None:
    found = gates(prompt, **known)
    assert (found.git_diff, found.git_diff_wanted) == (gate, wanted)


@pytest.mark.parametrize(
    ("prompt", "known", "due"),
    [
        ("why do the tests fail now?", {}, True),
        ("try once more", {"last_command_failed": True}, True),
        ("why do the tests fail now?", {"drifted": True}, False),
        ("why do companies fail?", {}, False),
    ],
)
def test_git_may_know_of_a_drift_that_nobody_else_does(
    prompt: str, known: dict[str, object], due: bool
) -> None:
    gate = "failure-after-drift" if due else None
    assert gates(prompt, **known).git_diff_if_drifted == gate


@pytest.mark.parametrize(
    ("prompt", "known", "gate"),
    [
        ("what did you say about the cache?", {}, "points-back"),
        ("perché exit code 137?", {}, "points-back"),
        ("2024-01-02 10:11:12 ERROR queue full\n?", {}, "points-back"),
        ("look through our conversation for the address", {}, "explicit"),
        ("what did you say about the cache?", {"has_outputs": False}, None),
        ("what is a cache?", {}, None),
    ],
)
def test_retrieval_is_opened_by_what_points_back(
    prompt: str, known: dict[str, object], gate: str | None
) -> None:
    assert gates(prompt, **known).retrieval_points_back == gate


@pytest.mark.parametrize("switch", ["always", "never"])
def test_a_switch_decides_instead_of_the_prompt(switch: GateSwitch) -> None:
    switched = GateSwitches(open_files=switch, patches=switch, git_diff=switch, retrieval=switch)
    for prompt in ("hello", "review my changes to src/orders.py, as you said earlier"):
        found = decide_gates(scene(prompt), switched)
        names = [found.open_files, found.patches, found.git_diff, found.retrieval_points_back]
        assert names == [switch] * 4
        assert [is_open(name) for name in names] == [switch == "always"] * 4


@pytest.mark.parametrize("switch", ["auto", "always", "never"])
@pytest.mark.parametrize("prompt", ["review my changes to src/orders.py, as you said earlier", "thanks!"])
def test_with_nothing_to_open_no_gate_looks_at_the_prompt(prompt: str, switch: GateSwitch) -> None:
    switches = GateSwitches(open_files=switch, patches=switch, git_diff="never", retrieval=switch)
    looked = decide_gates(
        PromptContext(prompt=prompt, last_turn_edited=True),
        msgspec.structs.replace(switches, git_diff="auto"),
    )
    expected = msgspec.structs.replace(looked, git_diff="never", git_diff_wanted=None, off_topic=None)
    assert decide_gates(PromptContext(prompt=prompt, last_turn_edited=True), switches) == expected


def test_switches_are_spelled_as_in_the_contract() -> None:
    assert msgspec.to_builtins(GateSwitches(git_diff="never")) == {
        "openFiles": "auto",
        "patches": "auto",
        "gitDiff": "never",
        "retrieval": "auto",
    }


@pytest.mark.parametrize("language", TRACES)
def test_a_stack_trace_is_known_in_every_common_language(language: str) -> None:
    assert gates(f"???\n{TRACES[language]}").open_files == "code-intent"
    assert structure.read_structure(f"???\n{TRACES[language]}", (), frozenset()).trace


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("src/orders.py?", ("src/orders.py",)),
        ("see ORDERS.PY.", ("src/orders.py",)),
        ("/home/me/shop/src/orders.py", ("src/orders.py",)),
        ("./src\\orders.py:12", ("src/orders.py",)),
        ("给src/orders.py加上注释", ("src/orders.py",)),
        ("cart.ts를 설명해 줘", ("web/cart.ts",)),
        ("die cart.ts-Datei", ("web/cart.ts",)),
        ("lib/orders.py", ()),
        ("myorders.py", ()),
        ("orders", ()),
        ("price_rules", ("app/price_rules.rb",)),
        ("read Shipping Notes.md", ("docs/Shipping Notes.md",)),
        ("the Makefile", ("Makefile",)),
        ("makefile", ()),
    ],
)
def test_a_file_is_mentioned_by_the_end_of_its_path(prompt: str, named: tuple[str, ...]) -> None:
    assert gates(prompt).mentioned == named


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("`total`?", True),
        ("total()?", True),
        ("applyTax?", True),
        ("total?", False),
        ("`tax`?", False),
        ("localhost:8080?", False),
        ("lib/unknown.go:12?", True),
        ("node.js?", False),
        ("```\nx = 1\n```", True),
        ("@@ -1,2 +1,3 @@\n-a", True),
    ],
)
def test_code_is_known_by_its_shape(prompt: str, opened: bool) -> None:
    known = gates(prompt, identifiers=frozenset({"total", "applyTax"}))
    assert (known.open_files == "code-intent") is opened


@pytest.mark.parametrize(
    "prompt",
    [
        "explain the difference between TCP and UDP",
        "I have a math test tomorrow",
        "I changed my mind",
        "how do I file a bug with Mozilla?",
        "find me a log cabin",
        "what is a Python decorator?",
        "¿cómo presento el fichero de impuestos?",
        "ich habe meine Meinung geändert",
        "j'ai changé d'avis",
        "气候变化有什么影响？",
        "気が変わった",
    ],
)
def test_a_trap_opens_nothing(prompt: str) -> None:
    found = gates(prompt)
    assert (found.open_files, found.patches, found.git_diff, found.retrieval_points_back) == (None,) * 4


def test_only_the_ends_of_a_pasted_megabyte_are_looked_at() -> None:
    paste = "lorem ipsum " * 90_000
    assert gates(f"explain web/cart.ts\n{paste}").open_files == "mention"
    assert gates(f"{paste}\nexplain web/cart.ts").open_files == "mention"
    assert gates(f"{paste}\nexplain web/cart.ts\n{paste}").open_files is None


@pytest.mark.parametrize(
    "piece", ["a.", "/-", "`", "at (", "```\n", '"', "(", 'File "', "what did I ", "我", "_A", "@@ -1"]
)
def test_a_hostile_prompt_is_decided_all_the_same(piece: str) -> None:
    prompt = piece * (1_000_000 // len(piece))
    assert gates(prompt) == gates(prompt)
    assert 0 <= uncovered_terms(prompt, [prompt])[0] <= 1


@given(st.text(max_size=300))
def test_any_text_gets_the_same_answer_twice(prompt: str) -> None:
    assert gates(prompt) == gates(prompt)
    share, missing = uncovered_terms(prompt, ["orders", prompt[:20]])
    assert (share == 0) is (missing == ())


def test_every_language_has_phrases_for_every_rule() -> None:
    named = {language: set(rules.words(language).rules) for language in rules.LANGUAGES}
    assert all(names == named["en"] for names in named.values())
    assert rules.matching_rules("review my changes") >= {"changes"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("the big red fox", True),
        ("the fox", True),
        ("the a b c d fox", False),
        ("the. fox", False),
        ("fox the", False),
    ],
)
def test_a_gap_stands_for_a_few_words_of_one_sentence(text: str, holds: bool) -> None:
    book = rules.Words(classes={}, rules={"r": ["the .. fox"]}, idioms=[], polite=[], stop=[])
    assert rules.matching_rules(text, [book]) == ({"r"} if holds else set())


@pytest.mark.parametrize("text", ["a dog", "a cat", "a wolf cub", "a polite fox"])
def test_a_choice_stands_where_one_of_its_words_or_classes_does(text: str) -> None:
    classes = {"pet": ["dog", "cat"]}
    book = rules.Words(
        classes=classes,
        rules={"r": ["a (<pet>|wolf cub|polite) fox?"]},
        idioms=["dogma"],
        polite=["a"],
        stop=[],
    )
    assert rules.matching_rules(text, [book]) == {"r"}
    assert rules.matching_rules("a wolf", [book]) == frozenset()


@pytest.mark.parametrize("phrase", ["(a|$)", "a (.) b", "()"])
def test_a_phrase_that_can_never_hold_is_refused(phrase: str) -> None:
    book = rules.Words(classes={}, rules={"r": [phrase]}, idioms=[], polite=[], stop=[])
    with pytest.raises(ValueError, match="not a valid word of a phrase"):
        rules.matching_rules("a b", [book])


def test_uncovered_names_the_terms_that_were_not_assembled() -> None:
    prompt = 'why does parseHeader drop the cookies when "Set-Cookie" comes 42 times in nginx?'
    assembled = ["def parse_header(line): drops every cookie", "42 times, the Set-Cookie header comes"]
    assert uncovered_terms(prompt, assembled) == (1 / 8, ("nginx",))


def test_uncovered_reads_chinese_and_japanese_by_pairs() -> None:
    assert uncovered_terms("缓存大小是多少？", ["缓存"])[1] == ("存大", "大小")
    assert uncovered_terms("キャッシュのサイズは？", ["キャッシュ サイズ"]) == (0.0, ())


def test_a_prompt_without_terms_is_covered() -> None:
    assert uncovered_terms("what is it then?", []) == (0.0, ())


def test_a_short_word_is_found_only_as_a_word() -> None:
    assert uncovered_terms("cat", ["concatenate"])[1] == ("cat",)
    assert uncovered_terms("cat", ["the cat."])[1] == ()


def test_there_are_labelled_prompts_in_six_languages_and_more_half_of_them_needing_nothing_of_a_block() -> (
    None
):
    prompts = gate_scores.own()
    assert len(prompts) >= 200
    assert {one.language for one in prompts} > set(rules.LANGUAGES)
    assert len({one.prompt for one in prompts}) == len(prompts)
    assert all(sum(block in one.wants for one in prompts) < len(prompts) / 2 for block in BLOCKS)
    for prompts in map(gate_scores.half, HALVES):
        assert len(prompts) >= 250
        assert {one.language for one in prompts} == set(rules.LANGUAGES)
        assert len({(one.prompt, one.scene) for one in prompts}) == len(prompts)
        assert all(sum(gate in one.wants for one in prompts) < len(prompts) / 2 for gate in GATES)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("half", HALVES)
def test_each_gate_is_right_about_both_halves(half: str, gate: str) -> None:
    found = gate_scores.scores(gate_scores.half(half), of=(gate,))[gate]
    assert (found.f1, found) >= (AIM, found)


@pytest.mark.parametrize("half", ["tuned", "held out", "fresh"])
def test_the_gates_are_right_about_our_own_prompts(half: str) -> None:
    assert short_of_aim([one for one in gate_scores.own() if one.half == half]) == {}


def test_the_gates_are_right_about_the_shared_prompts() -> None:
    prompts = gate_scores.shared()
    if prompts is None:
        pytest.skip("../shared/evals/gate_prompts.jsonl is not here")
    assert short_of_aim(prompts) == {}


def open_everything(scene: PromptContext) -> Gates:
    return Gates(open_files="pinned", patches="edit-intent", retrieval_points_back="points-back")


def open_nothing(scene: PromptContext) -> Gates:
    return Gates()


def look_for_single_words(scene: PromptContext) -> Gates:
    said = fold_text(scene.prompt)
    return Gates(
        open_files="code-intent" if "file" in said or "code" in said or "function" in said else None,
        patches="asks-about-changes" if "change" in said or "diff" in said else None,
        retrieval_points_back="points-back" if "log" in said or "earlier" in said else None,
    )


@pytest.mark.parametrize("twin", [open_everything, open_nothing, look_for_single_words])
def test_worse_gates_are_caught_by_the_labelled_prompts(twin: Decide) -> None:
    assert short_of_aim(gate_scores.own(), twin).keys() == set(BLOCKS)


def test_the_table_says_how_each_language_fares() -> None:
    table = gate_scores.table()
    assert "own, held out" in table
    assert all(f"{half}, {language} " in table for half in HALVES for language in rules.LANGUAGES)
    assert all(f"own, {language} " in table for language in rules.LANGUAGES)


def short_of_aim(prompts: list[Labelled], by: Decide = decide_gates) -> dict[str, float]:
    return {block: score.f1 for block, score in gate_scores.scores(prompts, by).items() if score.f1 < AIM}


def test_the_longest_word_of_a_stop_list_is_removed_first() -> None:
    assert uncovered_terms("猫为什么会打呼噜？", [])[1] == ("猫", "打呼", "呼噜")
