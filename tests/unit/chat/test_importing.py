"""An import is written in slices that are bounded in events and bytes, and reads its source line by line."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest

from sidecar.chat.actions import import_slices
from sidecar.chat.actions.history_import import ImportSurvey
from sidecar.chat.actions.import_slices import LEAST_EVENTS, MOST_EVENTS, SLICE_BYTES, ImportFile, Slices
from sidecar.model.chats import Chat, ChatKey
from sidecar.model.content import Usage
from sidecar.model.events import NewEvent
from sidecar.model.failures import Refused
from sidecar.store.engine.slices import SLICE_S, Pace
from tests.unit.chat.memory import events, open_session
from tests.unit.engines.sinks import ScriptedReplies


def blank() -> Chat:
    return Chat(
        id=1,
        key=ChatKey("n", "chat", "c", "s"),
        epoch="e",
        last_seq=0,
        title=None,
        title_by=None,
        project_path=None,
        config={},
        archived=False,
        created_at=0,
        last_activity=0,
        turns=0,
        preview=None,
        state="idle",
        head=None,
        queue_paused=False,
        usage=Usage(),
        model=None,
        deleted=False,
        revision=0,
        open_files=[],
    )


def source_of(*texts: str) -> ImportFile:
    lines = [json.dumps({"role": "user", "text": text}) for text in texts]
    return ImportFile(io.BytesIO("\n".join(lines).encode()), "data")


def slices_of(source: ImportFile, most: int) -> list[list[NewEvent]]:
    survey = ImportSurvey()
    for _, entry in source.entries():
        survey.take(entry)
    slices = Slices(source, survey.imported, blank(), renumber=False)
    made = []
    while events := slices.next(most):
        made.append(events)
    return made


@pytest.mark.parametrize(
    ("texts", "most"),
    [
        (["hello"] * 1000, 50),
        (["hello"] * 3000, MOST_EVENTS),
        (["x" * 20_000] * 300, MOST_EVENTS),
        (["short", "y" * 300_000] * 20, MOST_EVENTS),
        (["z" * 600_000] * 4, MOST_EVENTS),
    ],
)
def test_a_slice_has_few_events_and_few_bytes(texts: list[str], most: int) -> None:
    made = slices_of(source_of(*texts), most)
    assert len(made) > 1
    assert sum(map(len, made)) == 3 * len(texts) + 1
    for part in made:
        assert len(part) <= most
        assert sum(len(event.data) for event in part[:-1]) < SLICE_BYTES


def test_a_slow_disk_gets_smaller_slices_and_a_quick_one_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    sizes = [_paced(clock, took) for took in (SLICE_S * 100, SLICE_S, SLICE_S / 100)]
    assert sizes[0] == import_slices.LEAST_EVENTS
    assert sizes[0] <= sizes[1] < sizes[2] <= MOST_EVENTS


def _paced(clock: list[float], took: float) -> int:
    pace = Pace(LEAST_EVENTS, MOST_EVENTS)
    for _ in range(4):
        pace.begin()
        clock[0] += took
        pace.adjust()
    return pace.most


def test_too_many_lines_are_refused_at_the_first_that_is_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_slices, "MAX_LINES", 3)
    with pytest.raises(Refused) as refused:
        list(source_of(*["x"] * 5).lines())
    assert refused.value.reason == "too_many"
    assert refused.value.params == {"field": "data", "line": 4, "limit": 3}


def test_a_line_without_end_is_read_no_further_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_slices, "MAX_BLOB_LINE_BYTES", 1000)
    source = ImportFile(io.BytesIO(b'{"blob":' + b"x" * 1_000_000), "data")
    _, line = next(source.lines())
    assert len(line) <= 1002


def test_a_source_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"role":"user","text":"x"}\n')
    with path.open("rb") as file:
        source = ImportFile(file, "path")
        source.check_unchanged()
        path.write_text('{"role":"user","text":"something longer"}\n')
        with pytest.raises(Refused) as refused:
            source.check_unchanged()
    assert refused.value.name == "precondition_failed"


async def test_the_progress_of_an_import_counts_what_is_committed() -> None:
    source = source_of(*(f"prompt {number}" for number in range(3 * MOST_EVENTS)))
    told: list[tuple[bool, int]] = []
    imported = await import_slices.survey(source, lambda done, total: None)
    async with open_session(ScriptedReplies()) as session:
        slices = Slices(source, imported, session.chat, renumber=False)

        def report(done: int, total: int) -> None:
            told.append((2 * done > total, session.recorder.last_seq))

        await import_slices.write(session, slices, source, report, created=False)
        begun = [type for type, _ in await events(session)].index("import.started") + 1
    assert {seq > begun for writes, seq in told if writes} == {True}
    assert told[0] == (False, begun)
