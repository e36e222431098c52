"""What a session has come to: found in the structure of turns, by one scale, each thing once, within its tokens."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.context.budget import SNAPSHOT_TOKENS
from sidecar.context.fences import fence_text
from sidecar.context.resume import (
    PRIORITIES,
    ResumeEntry,
    SessionState,
    entries,
    missing_entries,
    navigation_entries,
    rendered_entries,
    update_state,
    with_summary,
    workflow_entries,
)
from sidecar.context.resume.git import git_operations, parse_commit
from sidecar.context.summary import Summary
from sidecar.context.tokens.counting import TokenCounter
from sidecar.context.tokens.families import family_of
from sidecar.model.content import Item, StoredError, Turn
from tests.unit.context.summaries import count, edit, item, model, plan, run, turn, unhurried, user


def _course(*turns: Turn, known: SessionState | None = None) -> SessionState:
    return update_state(known, turns)


def _texts(found: list[ResumeEntry], kind: str) -> list[str]:
    return [entry.text for entry in found if entry.kind == kind]


def _of(*turns: Turn, kind: str) -> list[str]:
    return _texts(entries(_course(*turns)), kind)


def _denied(command: str, words: str) -> Item:
    given = {"command": command}
    return item(
        "tool", name="run_command", kind="execute", input=given, status="denied", output={"text": words}
    )


def _answered(question: str, answer: str) -> Item:
    output = {"text": f"The user answers: {answer}"}
    return item("tool", name="ask_user", kind="other", input={"question": question}, output=output)


def _read(path: str) -> Item:
    return item("tool", name="read_file", kind="read", input={"path": path}, locations=[{"path": path}])


def _fetched(url: str) -> Item:
    return item("tool", name="fetch_url", kind="fetch", input={"url": url}, output={"text": "A page"})


DAY = (
    turn("t1", user("Port the shop to SQLite"), plan(("Read it", "completed"), ("Port it", "in_progress"))),
    turn(
        "t2", user("Go on"), edit("shop.py"), run("pytest", 1, "E  1 failed"), run("git commit -m 'Port'", 0)
    ),
    turn("t3", user("And now?"), _denied("rm -rf build", "The user denied this. Not the build folder!")),
    turn("t4", user("Which port?"), _answered("Which port?", "8080"), _read("notes.md")),
)


def test_every_kind_is_found_by_structure_alone() -> None:
    found = entries(_course(*DAY))

    assert _texts(found, "goal") == ["Port the shop to SQLite", "asked for last: Which port?"]
    assert _texts(found, "plan") == ["[in progress] Port it", "[completed] Read it"]
    assert _texts(found, "error") == ["`pytest`: exit code 1: E 1 failed"]
    assert _texts(found, "git") == ["git commit -m Port"]
    assert _texts(found, "blocker") == ["`rm -rf build`: The user denied this. Not the build folder!"]
    assert _texts(found, "decision") == ["Which port? The user answers: 8080"]
    assert _texts(found, "file") == ["`shop.py` changed: Go on", "`notes.md` read: Which port?"]


def test_the_highest_priority_comes_first_and_there_is_one_scale() -> None:
    found = entries(_course(*DAY))
    ranks = [entry.priority for entry in found]

    assert ranks == sorted(ranks, reverse=True)
    assert {entry.priority for entry in found} <= set(PRIORITIES.values())
    assert len(set(PRIORITIES.values())) == len(PRIORITIES), "no two ranks are the same"
    assert [found[0].kind, found[2].kind] == ["goal", "blocker"]


def test_what_happens_again_stands_once_where_it_happened_last() -> None:
    same = [
        turn(f"t{n}", user("Go on"), edit("a.py"), run("make", 2, "no rule"), _read("b.py")) for n in range(9)
    ]
    found = entries(_course(turn("t", user("Build it")), *same))
    texts = [entry.text for entry in found]

    assert len(texts) == len(set(texts))
    assert (_texts(found, "error"), len(_texts(found, "file"))) == (["`make`: exit code 2: no rule"], 2)
    looks = navigation_entries(_course(*same))
    assert [(entry.text, entry.turn_id) for entry in looks] == [("b.py", "t8"), ("a.py", "t8")]


def test_an_error_that_went_away_says_how_and_matters_less() -> None:
    course = _course(
        turn("t1", user("Test it"), run("pytest", 1, "E  broken")),
        turn("t2", user("Mend it"), edit("shop.py"), run("pytest", 0)),
    )
    [error] = [entry for entry in entries(course) if entry.kind == "error"]

    assert error.resolution == "worked after changes to shop.py"
    assert (error.priority, PRIORITIES["error.open"] > error.priority) == (PRIORITIES["error.solved"], True)


def test_what_was_denied_blocks_until_it_is_carried_out() -> None:
    refused = turn("t1", user("Run it"), _denied("make install", "The user denied this."))
    allowed = turn("t2", user("Now you may"), run("make install", 0))

    assert _of(refused, kind="blocker") == ["`make install`: The user denied this."]
    assert _of(refused, allowed, kind="blocker") == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("interrupted", ["the last turn was interrupted"]),
        ("failed", ["the last turn failed: No more words"]),
        ("cancelled", ["the last turn was cancelled by the user"]),
        ("completed", []),
    ],
)
def test_how_the_last_turn_ended_blocks_only_while_it_is_the_last(status: Any, words: list[str]) -> None:
    error = StoredError(message="No more words") if status == "failed" else None
    ended = msgspec.structs.replace(turn("t1", user("Do it")), status=status, error=error)

    assert _of(ended, kind="blocker") == words
    assert _of(ended, turn("t2", user("Again")), kind="blocker") == []


def test_the_newest_plan_counts_and_one_that_was_carried_out_is_none() -> None:
    first = turn("t1", user("Build it"), plan(("Dig", "in_progress"), ("Lay", "pending")))
    second = turn(
        "t2",
        user("Otherwise"),
        plan(
            ("Pour", "in_progress"),
        ),
    )
    done = turn(
        "t3",
        user("Well"),
        plan(
            ("Pour", "completed"),
        ),
    )

    assert _of(first, second, kind="plan") == ["[in progress] Pour"]
    assert _of(first, second, done, kind="plan") == []


def test_turns_that_a_rewind_has_hidden_leave_nothing() -> None:
    hidden = turn("t2", user("canary"), edit("canary.py"), run("git commit -m canary", 0), hidden=True)
    course = _course(turn("t1", user("Build it")), hidden)

    assert "canary" not in msgspec.json.encode(course).decode()
    assert (course.turns, course.up_to) == (1, "t1")


def test_a_place_that_the_user_went_back_to_is_told() -> None:
    again = msgspec.structs.replace(turn("t3", user("Use Rust instead")), siblings=["t2"])
    assert _of(turn("t1", user("Build it")), again, kind="decision") == [
        "the user went back and asked anew: Use Rust instead"
    ]


def test_pages_and_files_that_were_looked_at_last_come_first() -> None:
    course = _course(
        turn("t1", user("Look"), _read("a.py"), _fetched("https://example.com/doc"), _read("b.py")),
        turn("t2", user("Look again"), _read("a.py")),
    )
    assert [(entry.kind, entry.path) for entry in navigation_entries(course)] == [
        ("file", "a.py"),
        ("file", "b.py"),
        ("page", "https://example.com/doc"),
    ]


def test_the_workflow_is_what_is_under_way() -> None:
    assert {entry.kind for entry in workflow_entries(_course(*DAY))} == {"goal", "blocker", "plan"}


def test_turn_by_turn_comes_to_the_same_as_all_at_once() -> None:
    course: SessionState | None = None
    for one in DAY:
        course = _course(one, known=course)
    assert course is not None
    step_by_step, at_once = entries(course), entries(_course(*DAY))
    assert [entry.text for entry in step_by_step] == [entry.text for entry in at_once]
    again = msgspec.convert(msgspec.to_builtins(course), SessionState)
    assert entries(again) == step_by_step, "kept and read back it is the same"


def test_what_a_models_summary_settled_is_among_it() -> None:
    told = Summary(goal="他の目標", decisions=["SQLiteを使うことにした"], constraints=["テストは変えない"])
    found = entries(with_summary(_course(turn("t1", user("店を移植して"))), told))

    assert _texts(found, "decision") == ["SQLiteを使うことにした"]
    assert _texts(found, "rule") == ["テストは変えない"]
    assert _texts(found, "goal") == ["店を移植して"]


WISHES = {
    "Japanese": ("ゼブラ形式のパーサーをPythonに移植してください", "テストを実行して", "パーサーを書く"),
    "Arabic": ("انقل محلل صيغة زيبرا إلى بايثون", "شغّل الاختبارات", "اكتب المحلل"),
    "German": ("Portiere den Zebra-Parser nach Python", "Führe die Tests aus", "Parser schreiben"),
    "mixed": ("移植 parser του Zebra in Python, bitte", "run الاختبارات", "パーサー schreiben"),
}


@pytest.mark.parametrize("language", WISHES)
def test_any_language_gets_the_same_kinds(language: str) -> None:
    goal, wish, step = WISHES[language]
    course = _course(
        turn("t1", user(goal), plan((step, "in_progress"))),
        turn("t2", user(wish), run("pytest", 1, "E  1 failed"), edit("パーサー.py")),
        turn("t3", user(wish), _answered(wish, step), run("git commit -m 'ゼブラ'", 0)),
    )
    found = entries(course)
    text = rendered_entries(found, count, SNAPSHOT_TOKENS)

    kinds = ["goal", "plan", "error", "decision", "file", "git"]
    assert [kind for kind in kinds if not _texts(found, kind)] == []
    for told in (goal, wish, step, "pytest", "パーサー.py", "git commit -m ゼブラ"):
        assert told in text


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("git commit -m 'Begin it'", [["git", "commit", "-m", "Begin it"]]),
        ("cd src && git -C .. -c user.name=A checkout -b zebra; ls", [["git", "checkout", "-b", "zebra"]]),
        ("GIT_EDITOR=true /usr/bin/git rebase --continue | cat", [["git", "rebase", "--continue"]]),
        (
            "git add . && git commit -m 'a; git push'\ngit push",
            [["git", "commit", "-m", "a; git push"], ["git", "push"]],
        ),
        ("(git stash) && sudo git tag v1", [["git", "stash"], ["git", "tag", "v1"]]),
        ("git status; git log; git diff; git stash list; git branch; git tag --list 'v*'", []),
        ("echo git commit", []),
        ("git commit --dry-run", []),
        ("git commit -m 'not closed", []),
        ("", []),
        ("git", []),
        ("git -C", []),
    ],
)
def test_changes_of_a_repository_are_read_from_a_command(command: str, found: list[list[str]]) -> None:
    assert git_operations(command) == found


def test_a_commit_is_named_in_every_translation_of_git() -> None:
    assert parse_commit("[main 061008e] Begin\n 1 file changed") == "main 061008e"
    assert parse_commit("[master (Basis-Commit) 061008e] Anfang\n") == "master 061008e"
    assert parse_commit("nothing to commit") is None


def test_only_what_the_window_lacks_is_missing() -> None:
    found = entries(_course(*DAY))
    window = ["Port the shop  to\nSQLite", '{"command": "git commit -m \\"Port\\""}', "shop.py: -1, +2 lines"]
    lacking = [entry.text for entry in missing_entries(found, window)]

    assert "[in progress] Port it" in lacking
    assert not {"Port the shop to SQLite", "git commit -m Port", "`shop.py` changed: Go on"} & set(lacking)
    everything = [entry.text for entry in found] + [part for entry in found for part in entry.seek]
    assert missing_entries(found, everything) == []


def test_files_that_were_only_read_are_no_reason_to_send_anything() -> None:
    found = entries(_course(turn("t1", user("Look around"), _read("a.py"))))
    assert missing_entries(found, ["Look around"]) == []
    assert [entry.path for entry in missing_entries(found, [])] == [None, "a.py"]


def test_what_matters_most_is_cut_and_not_left_out() -> None:
    course = _course(turn("t1", user("Port " + "very " * 200 + "much"), plan(("Port it", "in_progress"))))
    text = rendered_entries(entries(course), count, 60)

    assert count(text) <= 60
    assert text.splitlines()[1].startswith("- goal: Port very")
    assert text.splitlines()[1].endswith("…")


def test_nothing_is_drawn_of_nothing() -> None:
    assert rendered_entries([], count, SNAPSHOT_TOKENS) == ""
    assert rendered_entries(entries(SessionState()), count, SNAPSHOT_TOKENS) == ""
    assert rendered_entries(entries(_course(*DAY)), count, 3) == ""


TEXTS = st.text(st.characters(), max_size=400)
ITEMS = st.one_of(
    TEXTS.map(user),
    TEXTS.map(model),
    st.builds(run, TEXTS, st.integers(0, 3), TEXTS),
    st.builds(edit, TEXTS),
    st.builds(_denied, TEXTS, TEXTS),
    st.builds(_answered, TEXTS, TEXTS),
    st.builds(_fetched, TEXTS),
    st.lists(st.tuples(TEXTS, st.sampled_from(["pending", "in_progress", "completed"])), max_size=30).map(
        lambda steps: plan(*steps)
    ),
)
SESSIONS = st.lists(st.lists(ITEMS, max_size=6).map(lambda items: turn("t", *items)), max_size=6)


@unhurried
@given(
    SESSIONS,
    st.sampled_from(["gpt-4o", "gpt-4", "claude-sonnet-4", "llama-3"]),
    st.integers(0, SNAPSHOT_TOKENS),
)
def test_no_session_is_told_in_more_tokens_than_there_are(session: list[Turn], name: str, room: int) -> None:
    counter, family = TokenCounter(), family_of(name)

    def spell(text: str) -> str:
        return fence_text("secret", "snapshot", "resume snapshot", text)

    found = entries(update_state(None, session))
    for most in (room, SNAPSHOT_TOKENS):
        text = rendered_entries(found, lambda text: counter.count(text, family), most, spell)
        assert counter.count(text, family) <= most
        assert text == rendered_entries(found, lambda text: counter.count(text, family), most, spell), (
            "deterministic"
        )
        text.encode()


def test_a_thousand_turns_are_told_in_as_many_tokens_as_ten() -> None:
    chance = random.Random(7)
    course: SessionState | None = None
    for batch in range(100):
        turns = [
            turn(
                f"t{batch}-{at}",
                user(f"Step {chance.random()} of it"),
                edit(f"src/part{chance.randrange(400)}.py"),
                run(f"make part{chance.randrange(90)}", chance.randrange(2), f"line {chance.random()}"),
                run(f"git commit -m 'Part {chance.random()}'", 0),
                plan(*((f"Step {n} {chance.random()}", "pending") for n in range(12))),
            )
            for at in range(10)
        ]
        course = update_state(course, turns)
    assert course is not None
    assert course.turns == 1000
    assert len(msgspec.json.encode(course)) < 40_000, "what is kept does not grow with the chat"
    assert count(rendered_entries(entries(course), count, SNAPSHOT_TOKENS)) <= SNAPSHOT_TOKENS
