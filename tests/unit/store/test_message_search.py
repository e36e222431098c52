"""Search in one chat's past: what is found, what must not be, and that old databases learn it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from sidecar.chat.actions.history_import import ImportSurvey, TurnEvents, TurnGrouper
from sidecar.chat.actions.import_lines import decode
from sidecar.context.retrieval import pack_snippets, rank_messages, render_snippets, terms_of
from sidecar.model.chats import Chat, ChatKey
from sidecar.model.events import NewEvent
from sidecar.model.recall import MessagePool
from sidecar.store import purge
from sidecar.store.engine.sqlite import Connection, connect
from sidecar.store.search import index_removal, message_search
from sidecar.store.tables import chats, journal
from sidecar.store.tables.migrations import known_migrations, migrate
from sidecar.store.tables.projections import Projection

SMALL_TALK = (
    "Could you tidy up the paragraph about opening hours?",
    "Sure, here it is with shorter sentences and the hours in a list.",
    "And a heading for it, please, something friendly.",
    "How about: come by, we are open.",
)


@pytest.fixture
def db() -> Iterator[Connection]:
    connection = connect(":memory:", isolation_level=None)
    migrate(connection, known_migrations(), lambda _: None)
    yield connection
    connection.close()


def _append(db: Connection, chat: int, events: Sequence[NewEvent]) -> None:
    (last,) = db.execute("SELECT last_seq FROM chats WHERE id = ?", (chat,)).fetchone()
    stored = journal.number(events, last, 0)
    journal.insert(db, chat, stored)
    projection = Projection(db, chat)
    for event in stored:
        projection.take(event)
    projection.finish()
    db.execute("UPDATE chats SET last_seq = ? WHERE id = ?", (stored[-1].seq, chat))


def _events(source: str, chat: Chat) -> list[NewEvent]:
    """What an import of these lines appends."""
    survey, turns = ImportSurvey(), TurnGrouper()
    ended = []
    for line in source.encode().splitlines():
        entry = decode(line)
        survey.take(entry)
        ended.append(turns.take(entry))
    ended.append(turns.last())
    events = TurnEvents(chat, renumber=False)
    return [
        *(event for turn in ended if turn for event in events.of(turn)),
        *events.end(survey.imported, chat),
    ]


def _chat(db: Connection, turns: Iterable[tuple[str, str]], name: str = "a") -> int:
    """A chat of turns (role, text), brought in as an import brings it."""
    lines = [
        {"role": role, "text": text, "ts": 1_700_000_000 + at * 60} for at, (role, text) in enumerate(turns)
    ]
    chat = chats.create(db, ChatKey("test", "chat", name, name), None, {}, 0)
    _append(db, chat.id, _events("\n".join(map(json.dumps, lines)), chat))
    return chat.id


def _small_talk(turns: int) -> list[tuple[str, str]]:
    return [("assistant" if at % 2 else "user", f"{SMALL_TALK[at % 4]} ({at})") for at in range(2 * turns)]


def _search(db: Connection, chat: int, prompt: str, **more: Any) -> MessagePool:
    return message_search.search(db, chat, terms_of(prompt), **more)


def _holding(pool: MessagePool) -> list[str]:
    """The texts that hold a term themselves, in the chat's order."""
    return [one.text for one in pool.candidates if one.words or one.letters]


def test_a_word_is_found_in_all_its_forms(db: Connection) -> None:
    chat = _chat(db, [*_small_talk(4), ("user", "We keep deploying on Fridays"), *_small_talk(4)])
    assert _holding(_search(db, chat, "When do we deploy?")) == ["We keep deploying on Fridays"]


def test_another_chat_is_never_found(db: Connection) -> None:
    ours = _chat(db, [("user", "The password of the demo is swordfish")], "ours")
    theirs = _chat(db, [("user", "The password of the demo is marlin"), *_small_talk(3)], "theirs")
    found = _search(db, ours, "What is the password of the demo? marlin?")
    assert [one.text for one in found.candidates] == ["The password of the demo is swordfish"]
    assert not any("swordfish" in one.text for one in _search(db, theirs, "swordfish password").candidates)


def test_hidden_turns_are_neither_found_nor_brought_along(db: Connection) -> None:
    chat = _chat(
        db, [("user", "Plan A: lighthouse"), ("user", "Plan B: windmill"), ("user", "Plan C: windmill too")]
    )
    ids = [id for (id,) in db.execute("SELECT id FROM turns WHERE chat = ? ORDER BY ordinal", (chat,))]
    _append(db, chat, [NewEvent("chat.rewound", {"head": ids[0], "hidden": ids[1:]})])
    assert [one.text for one in _search(db, chat, "lighthouse windmill").candidates] == ["Plan A: lighthouse"]


def test_many_hidden_hits_leave_room_for_a_visible_one(db: Connection) -> None:
    tries = [("user", f"Try the zeppelin, attempt {at}") for at in range(30)]
    chat = _chat(db, [("user", "We sold a zeppelin"), *tries])
    ids = [id for (id,) in db.execute("SELECT id FROM turns WHERE chat = ? ORDER BY ordinal", (chat,))]
    _append(db, chat, [NewEvent("chat.rewound", {"head": ids[0], "hidden": ids[1:]})])
    assert _holding(_search(db, chat, "zeppelin", limit=10)) == ["We sold a zeppelin"]


def test_what_was_said_around_a_hit_comes_along(db: Connection) -> None:
    turns = [
        *_small_talk(20),
        ("user", "Which cat is the orange one?"),
        ("assistant", "That is Miso."),
        *_small_talk(20),
    ]
    pool = _search(db, _chat(db, turns), "orange cat")
    texts = [one.text for one in pool.candidates]
    assert "That is Miso." in texts
    assert len(texts) <= 1 + 2 * (2 * message_search.REACH + 1)


def test_users_words_come_before_long_answers(db: Connection) -> None:
    answer = "The harvest of olives. " + "It depends on weather, soil and patience. " * 40
    chat = _chat(
        db, [pair for at in range(20) for pair in (("user", f"Olives, part {at}"), ("assistant", answer))]
    )
    first = _search(db, chat, "olives harvest", limit=9)
    assert sum(one.role == "user" and bool(one.words) for one in first.candidates) >= 6


@pytest.mark.parametrize("prompt", ["What did Katarzina say?", "Who is Katarzyan?", "Katarzyna"])
def test_a_misspelt_name_is_found(db: Connection, prompt: str) -> None:
    chat = _chat(db, [*_small_talk(5), ("user", "My sister Katarzyna moved to Gdynia"), *_small_talk(5)])
    assert _holding(_search(db, chat, prompt)) == ["My sister Katarzyna moved to Gdynia"]


def test_a_word_is_found_inside_a_compound(db: Connection) -> None:
    chat = _chat(db, [*_small_talk(3), ("user", "Die Datenbankverbindung bricht ab"), *_small_talk(3)])
    assert _holding(_search(db, chat, "Was war mit der Datenbank?")) == ["Die Datenbankverbindung bricht ab"]


@pytest.mark.parametrize(
    ("said", "prompt"),
    [
        ("我最喜欢的颜色是深绿色", "我喜欢什么颜色？"),
        ("来週の会議は京都で行います", "京都の予定は？"),
        ("서버를 부산으로 옮겼어요", "서버는 어디에 있어?"),
    ],
)
def test_scripts_without_blanks_are_found_by_their_characters(db: Connection, said: str, prompt: str) -> None:
    chat = _chat(db, [*_small_talk(3), ("user", said), *_small_talk(3)])
    assert said in _holding(_search(db, chat, prompt))


def test_an_imported_speaker_has_a_name(db: Connection) -> None:
    chat = _chat(db, [("Ada", "I bought a kayak"), ("Ben", "A kayak? Lovely!"), ("user", "So a kayak it is")])
    names = [one.name for one in _search(db, chat, "kayak").candidates]
    assert names == ["Ada", "Ben", None]


@pytest.mark.parametrize(
    "prompt",
    [
        '" OR q', "a AND", "NEAR(x y", "text: *", "stems MATCH", "kayak*", '"kayak" -"', "(((", "{kayak}:",
        "^kayak + \\", "\x00kayak\x00", "kayak\ud800", "ka\u0301yak 🛶 kayak", "\U00016e40\U0001e900 kayak",
        "²³ ½ kayak", "' ; DROP TABLE messages; --", "กขค kayak \u1c89", "x" * 5000, "kayak " * 5000, "",
    ],
)  # fmt: skip
def test_no_prompt_is_read_as_syntax(db: Connection, prompt: str) -> None:
    chat = _chat(db, [("user", "I bought a kayak"), *_small_talk(2)])
    found = [one.text for one in _search(db, chat, prompt).candidates if one.words]
    assert found == (["I bought a kayak"] if "kayak" in prompt else [])


def test_a_search_is_bounded_however_often_a_word_is_said(db: Connection) -> None:
    chat = _chat(
        db, [("user", f"invoice number {at}") for at in range(message_search.MATCHES_PER_TERM + 400)]
    )
    pool = _search(db, chat, "invoice", limit=20)
    assert len(pool.candidates) <= 20 * (2 * message_search.REACH + 1)
    assert pool.frequency["invoice"] == pytest.approx(pool.total, rel=0.05)


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Where did I say that I met my wife?", "We met on a ferry to Ischia, my wife and I, in the rain."),
        ("What was the budget for the kitchen?", "The kitchen must not cost more than 18,400 euros."),
        ("Which database did we decide on?", "Let us stay with Postgres as our database, the team knows it."),
        ("What is the name of my dentist?", "Dr. Okonkwo pulled my tooth; I will not get another dentist."),
    ],
)
def test_a_question_gets_its_answer_from_hundreds_of_turns(db: Connection, prompt: str, answer: str) -> None:
    facts = [
        "We met on a ferry to Ischia, my wife and I, in the rain.",
        "The kitchen must not cost more than 18,400 euros.",
        "Let us stay with Postgres as our database, the team knows it.",
        "Dr. Okonkwo pulled my tooth; I will not get another dentist.",
    ]
    turns = _small_talk(30)
    for fact in facts:
        turns += [("user", fact), ("assistant", "Noted."), *_small_talk(60)]
    chat = _chat(db, turns)
    text = render_snippets(pack_snippets(rank_messages(prompt, _search(db, chat, prompt)), len, 800))
    assert answer in text


def _versions_up_to(version: int) -> list[Any]:
    return [step for step in known_migrations() if step.version <= version]


def test_an_older_database_finds_what_it_already_held() -> None:
    db = connect(":memory:", isolation_level=None)
    migrate(db, _versions_up_to(2), lambda _: None)
    chat = _chat_of_old(db, "We keep deploying on Fridays, says Katarzyna")
    migrate(db, known_migrations(), lambda _: None)
    assert _holding(_search(db, chat, "deploy")) == ["We keep deploying on Fridays, says Katarzyna"]
    assert _holding(_search(db, chat, "Katarzina")) == ["We keep deploying on Fridays, says Katarzyna"]
    db.close()


def _chat_of_old(db: Connection, text: str) -> int:
    """A chat as an older program has left it: without columns that came later."""
    later = {"events": "sum INTEGER", "messages": "sum INTEGER", "chats": "elsewhere INTEGER DEFAULT 0"}
    lacking = {
        table: column
        for table, column in later.items()
        if column.split()[0] not in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    }
    for table, column in lacking.items():
        db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    chat = chats.create(db, ChatKey("test", "chat", "old", "old"), None, {}, 0)
    lines = json.dumps({"role": "user", "text": text})
    _append(db, chat.id, _events(lines, chat))
    for table, column in lacking.items():
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column.split()[0]}")
    return chat.id


@pytest.mark.parametrize("version", [2, known_migrations()[-1].version])
def test_a_deleted_chat_leaves_no_word_in_either_index(version: int) -> None:
    db = connect(":memory:", isolation_level=None)
    migrate(db, _versions_up_to(version), lambda _: None)
    long = "Swordfish at dawn. " + "wörter über wörter " * 300
    chat = _chat_of_old(db, long)
    migrate(db, known_migrations(), lambda _: None)
    assert _left(db) == [1, 1]
    purge.mark(db, chat, 0)
    purge.remove_rows(db, chat, purge.PurgeBudget(100))
    assert _left(db) == [0, 0]
    while index_removal.has_residue(db):
        index_removal.scrub(db)
    pages = b"".join(
        bytes(block)
        for table in ("stems", "grams")
        for (block,) in db.execute(f"SELECT block FROM {table}_data")
    )
    assert b"swordfish" not in pages
    db.close()


def _left(db: Connection) -> list[int]:
    """Messages that each index still gives for a word's beginning, middle and end."""
    counts = []
    for table, tokens in (("stems", ("swordfish", "dawn", "über")), ("grams", ("swo", "fis", "wör", "ter"))):
        expression = " OR ".join(f'"{token}"' for token in tokens)
        counts.append(
            db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (expression,)).fetchone()[0]
        )
    return counts
