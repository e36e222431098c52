"""Texts that are kept are found again, by whom they may be, and gone when they are removed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from sidecar.index import Index, preview
from sidecar.model.index import NewSource, Query
from sidecar.store import Store
from sidecar.workspace.paths import Workspace

LOG = "\n".join(f"line {n}: nothing of note" for n in range(300)) + "\nERROR the turbine overheated at dawn\n"


def _output(text: str, chat: int | None, label: str = "make") -> NewSource:
    return NewSource(text, label=label, kind="output", chat=chat, project="/project", tool="run_command")


async def test_what_is_added_is_found_at_once_with_its_lines(index: Index, chat: int) -> None:
    source = await index.add(_output(LOG, chat))
    [results] = await index.search([Query("turbine", chat=chat)])
    hit = results.hits[0]
    assert "overheated at dawn" in hit.text
    assert (hit.source.id, hit.source.chunks > 1, hit.lines[1]) == (source.id, True, 301)


async def test_what_is_kept_can_be_read_at_once_and_searched_when_settled(index: Index, chat: int) -> None:
    source = await index.keep(_output(LOG, chat))
    whole = await index.get(source.id)
    assert whole is not None
    assert whole.text == LOG
    await index.settle()
    [results] = await index.search([Query("turbine", chat=chat)])
    assert results.hits


async def test_a_search_waits_for_what_was_kept_just_now(index: Index, chat: int) -> None:
    await index.keep(_output(LOG, chat))
    [results] = await index.search([Query("turbine", chat=chat)])
    assert results.hits


async def test_a_hit_leads_to_its_chunk_and_a_source_to_its_lines(index: Index, chat: int) -> None:
    source = await index.add(_output(LOG, chat))
    [results] = await index.search([Query("turbine", chat=chat)])
    around = await index.get(results.hits[0].id)
    some = await index.get(source.id, (2, 3))
    assert around is not None
    assert "overheated" in around.text
    assert len(around.text) < len(LOG)
    assert some is not None
    assert (some.text, some.lines) == (
        "line 1: nothing of note\nline 2: nothing of note",
        (2, 3),
    )


async def test_no_scope_reaches_another_chat(index: Index, chat: int, other: int) -> None:
    source = await index.add(_output(LOG, chat))
    found = await index.search(
        [Query("turbine", chat=other), Query("turbine", scope="chat"), Query("turbine", scope="project")]
    )
    assert [results.hits for results in found] == [(), (), ()]
    assert await index.get(source.id, chat=other) is None
    [project] = await index.search([Query("turbine", scope="project", project="/project")])
    assert project.hits


async def test_a_deleted_chat_leaves_nothing_behind(
    index: Index, store: Store, chat: int, other: int
) -> None:
    source = await index.add(_output(LOG, chat))
    await index.add(_output(LOG, other))
    marked = await store.retention.mark_chats([chat])
    await store.retention.remove_marked(marked.marked)
    [gone, left] = await index.search([Query("turbine", chat=chat), Query("turbine", scope="all")])
    assert (gone.hits, [hit.source.chat for hit in left.hits], await index.get(source.id)) == (
        (),
        [other],
        None,
    )


async def test_what_is_removed_is_counted(index: Index, chat: int) -> None:
    source = await index.add(_output(LOG, chat))
    removed = await index.remove([source.id, "out:nothing"])
    assert (removed.sources, removed.chunks, removed.bytes) == (1, source.chunks, len(LOG))


async def test_sources_come_in_pages_newest_first(index: Index, chat: int) -> None:
    ids = [(await index.keep(_output(f"text {n}", chat))).id for n in range(5)]
    first = await index.sources(chat=chat, limit=3)
    second = await index.sources(chat=chat, limit=3, cursor=first.cursor)
    assert [one.id for one in (*first.sources, *second.sources)] == ids[::-1]
    assert second.cursor is None


async def test_a_folder_is_kept_without_what_git_ignores(index: Index, chat: int, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".gitignore").write_text("*.log\n")
    (project / "src" / "engine.py").write_text("def turbine():\n    return 1\n")
    (project / "noise.log").write_text("turbine\n")
    (project / "picture").write_bytes(b"\0\1\2")
    workspace = Workspace(str(project))
    kept, skipped = await index.add_path(workspace, ".", chat=chat, project="/project")
    assert [source.path for source in kept] == [".gitignore", "src/engine.py"]
    assert [path for path, _ in skipped] == ["picture"]
    again, _ = await index.add_path(workspace, "src/engine.py", chat=chat, project="/project")
    assert again[0].id == kept[1].id
    (project / "src" / "engine.py").write_text("def propeller():\n    return 1\n")
    await index.add_path(workspace, "src", chat=chat, project="/project")
    old, new = await index.search([Query("turbine", chat=chat), Query("propeller", chat=chat)])
    assert (len(old.hits), len(new.hits)) == (0, 1)


async def test_work_that_a_crash_left_is_taken_up(store: Store, chat: int) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            scope.cancel()
            with anyio.CancelScope(shield=True):
                await Index(store.index, tasks).keep(_output(LOG, chat))
    async with anyio.create_task_group() as tasks:
        index = Index(store.index, tasks)
        index.start()
        await index.settle()
        [results] = await index.search([Query("turbine", chat=chat)])
    assert results.hits


@pytest.mark.parametrize("limit", [30, 200])
def test_a_preview_keeps_to_its_tokens(limit: int) -> None:
    def count(text: str) -> int:
        return len(text.split())

    made = preview(LOG, label="make", id="out:abc", max_tokens=limit, count=count)
    assert count(made) <= limit
    assert "out:abc" in made
    assert ("overheated" in made) == (limit == 200)
