"""What tools print is kept out of the window, and found again: by the model's tools, by apps, by people."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.blackbox.work.test_commands import command
from tests.blackbox.work.workbench import Workbench, call, outputs, tools
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar

pytestmark = pytest.mark.slow

Json = dict[str, Any]

LOG = "\n".join(f"step {n}: all looms are quiet" for n in range(400))
NOISE = "seq 1 3000; echo 'ERROR loom 7: the red thread broke'; seq 3001 6000"


def found(sidecar: Sidecar, *queries: str, **more: Any) -> list[list[Json]]:
    results = sidecar.call("index/search", **{"chatId": "c", "queries": list(queries), **more})["results"]
    return [result["hits"] for result in results]


def test_a_long_output_is_sent_by_its_preview_and_found_again(bench: Workbench) -> None:
    steps = [
        call("run_command", command=NOISE),
        call("search_context", queries=["red thread"]),
        "done",
    ]
    sidecar = bench.start(steps)
    ended = sidecar.run("go", chatId="c")

    run, search = tools(sidecar, ended["sessionId"])
    assert len(run["output"]["text"]) < 1500
    assert run["output"]["source"] in run["output"]["text"]
    assert "exit code 0" in run["output"]["text"]
    assert "ERROR loom 7: the red thread broke" in search["output"]["text"]
    assert len(search["output"]["text"]) < 6000
    whole = sidecar.call("blob/read", ref=run["output"]["ref"], length=10**6)
    assert "ERROR loom 7" in base64.b64decode(whole["data"]).decode()


def test_lines_of_an_output_are_shown_by_its_reference(bench: Workbench) -> None:
    sidecar = bench.start([call("run_command", command="seq 100000 104000"), "done"], ["again"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    (run,) = tools(sidecar, session)
    lines = {"start": 2, "end": 4}

    assert sidecar.call("index/get", chatId="c", id=run["output"]["source"], lines=lines)["text"].split() == [
        "100001",
        "100002",
        "100003",
    ]


def test_the_model_reads_lines_of_an_output(bench: Workbench) -> None:
    sidecar = bench.start([call("run_command", command="seq 100000 104000"), "done"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    source = tools(sidecar, session)[0]["output"]["source"]
    sidecar.close_stdin()
    sidecar.wait()
    sidecar = bench.start(
        [
            call("get_output", id=source, start_line=2, end_line=3),
            call("get_output", id="out:nothing"),
            "done",
        ],
    )
    sidecar.run("go", chatId="c")

    shown, missing = outputs(sidecar, session)[-2:]
    assert shown.splitlines()[1:3] == ["100001", "100002"]
    assert "Nothing is stored as 'out:nothing'" in missing


def test_a_short_output_stays_and_is_found(bench: Workbench) -> None:
    sidecar = bench.start([call("run_command", command="seq 1 300"), "done"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    (run,) = tools(sidecar, session)

    assert run["output"]["truncated"] is False
    assert "\n150\n" in run["output"]["text"]
    (hits,) = found(sidecar, "299")
    assert [hit["sourceId"] for hit in hits] == [run["output"]["source"]]


def test_what_a_model_asked_to_read_is_shown_whole(bench: Workbench) -> None:
    (bench.project / "long.txt").write_text(LOG)
    sidecar = bench.start([call("read_file", path="long.txt"), call("read_file", path="long.txt"), "done"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    first, second = tools(sidecar, session)

    assert first["output"]["text"].endswith("400\tstep 399: all looms are quiet")
    assert first["output"]["source"] == second["output"]["source"], "the same text is kept once"


def test_one_file_is_counted_as_one(bench: Workbench) -> None:
    (bench.project / "one.txt").write_text("loom\n")
    sidecar = bench.start([call("index_path", path="one.txt"), "done"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert outputs(sidecar, session)[0].startswith("1 file can be searched: 1 line, about ")


def test_a_folder_is_indexed_without_being_read(bench: Workbench) -> None:
    (bench.project / ".gitignore").write_text("secret.txt\n")
    (bench.project / "secret.txt").write_text("a hidden loom")
    (bench.project / "src" / "loom.py").write_text("def weave(thread):\n    return thread * 7\n")
    sidecar = bench.start(
        [call("index_path", path="."), call("search_context", queries=["weave"], scope="project"), "done"]
    )
    session = sidecar.run("go", chatId="c")["sessionId"]
    added, search = outputs(sidecar, session)

    assert added.startswith("4 files can be searched: ")
    assert "def weave(thread):" in search
    assert found(sidecar, "hidden loom", scope="project") == [[]]


@pytest.mark.parametrize("path", ["src/loom.py", "src"])
def test_indexed_files_are_found_by_every_chat_of_the_project(bench: Workbench, path: str) -> None:
    (bench.project / "src" / "loom.py").write_text("def weave(thread):\n    return thread * 7\n")
    search = call("search_context", queries=["weave"])
    sidecar = bench.start([call("index_path", path=path), search, "done"], [search, "done"], [search, "done"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    other = sidecar.run("go", chatId="other", projectPath=str(bench.project))["sessionId"]
    (bench.spawn.folder / "elsewhere").mkdir()
    outside = sidecar.run("go", chatId="away", projectPath=str(bench.spawn.folder / "elsewhere"))["sessionId"]

    assert "def weave(thread):" in outputs(sidecar, session)[-1]
    assert "def weave(thread):" in outputs(sidecar, other)[-1]
    assert "Nothing holds these words" in outputs(sidecar, outside)[-1]


def test_what_an_app_adds_is_found_without_a_scope(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    sidecar.call("index/add", chatId="c", path="notes.txt")
    sidecar.call("index/add", projectPath=str(bench.project), content="a red thread", source="app")
    sidecar.call("index/add", chatId="c", content="a blue thread", source="app")
    sidecar.call("chat/open", chatId="other", projectPath=str(bench.project))
    sidecar.call("chat/open", chatId="alone")
    sidecar.call("index/add", chatId="alone", content="a green thread", source="app")

    def texts(**whose: str) -> set[str]:
        results = sidecar.call("index/search", queries=["thread OR second"], **whose)["results"]
        return {hit["text"] for hit in results[0]["hits"]}

    notes = "first\nsecond\nthird"
    assert texts(chatId="c") == {notes, "a red thread", "a blue thread"}
    assert texts(chatId="other") == {notes, "a red thread"}
    assert texts(chatId="alone") == {"a green thread"}
    assert texts(projectPath=str(bench.project)) == {notes, "a red thread", "a blue thread"}
    listed = sidecar.call("index/list", chatId="other")["items"]
    assert {item["source"] for item in listed} == {"notes.txt", "app"}
    assert sidecar.call("index/remove", chatId="c", source="notes.txt") == {"removed": 1}


def test_the_newest_texts_come_first_whoever_has_them(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    for name in ("one", "two", "three"):
        whose = {"projectPath": str(bench.project)} if name == "two" else {"chatId": "c"}
        sidecar.call("index/add", content=f"loom {name}", source=name, **whose)
    (hits,) = found(sidecar, "loom", sort="recent")
    assert [hit["source"] for hit in hits] == ["three", "two", "one"]


def test_the_chunks_of_a_source_are_listed_page_by_page(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    source = sidecar.call("index/add", chatId="c", content=LOG, source="loom.log")["sourceId"]
    listed: list[Json] = []
    more: Json = {}
    while not listed or "cursor" in more:
        page = sidecar.call("index/chunks", chatId="c", id=source, includeText=True, limit=2, **more)
        listed += page["items"]
        more = {"cursor": page["nextCursor"]} if "nextCursor" in page else {}

    assert len(listed) == page["source"]["chunks"] > 2
    assert "".join(chunk["text"] for chunk in listed) == LOG
    assert all(LOG[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in listed)
    got = sidecar.call("index/get", chatId="c", id=listed[1]["id"])
    assert (got["text"], got["lines"]) == (listed[1]["text"], listed[1]["lines"])
    assert "text" not in sidecar.call("index/chunks", chatId="c", id=source)["items"][0]
    sidecar.call("chat/open", chatId="other")
    assert sidecar.refused("index/chunks", chatId="other", id=source).data["name"] == "not_found"


def test_a_search_has_as_many_hits_as_the_setting_says(bench: Workbench) -> None:
    (bench.spawn.folder / "few.toml").write_text("[index]\nretrieval_limit = 2\n")
    search = call("search_context", queries=["loom"])
    sidecar = bench.spawn(
        "--config",
        str(bench.spawn.folder / "few.toml"),
        model=bench.script([search, call("search_context", queries=["loom"], limit=4), "done"]),
    )
    bench.open(sidecar)
    for number in range(6):
        (bench.project / f"{number}.py").write_text(
            f"def loom_{number}(thread):\n    return 'loom', thread, {number}\n"
        )
    sidecar.call("index/add", chatId="c", path=".")
    session = sidecar.run("go", chatId="c")["sessionId"]

    assert [output.count("[out:") for output in outputs(sidecar, session)] == [2, 4]
    assert [len(hits) for hits in found(sidecar, "loom", "return thread")] == [2, 2]
    assert len(found(sidecar, "loom", limit=3)[0]) == 3
    assert len(command(sidecar, "/search loom")["data"]["hits"]) == 2
    sidecar.call("chat/open", chatId="other", projectPath=str(bench.project))
    question = "What do loom_1(thread) and loom_2(thread) return, and which loom is quiet?"
    block = kept_block(sidecar, question, chatId="other")
    assert block["text"].count("[out:") == 2


def test_a_file_that_has_changed_is_found_as_it_is_now(bench: Workbench) -> None:
    loom = bench.project / "src" / "loom.py"
    loom.write_text("def weave(thread):\n    return thread * 7\n")
    search = call("search_context", queries=["weave thread"], scope="project")
    sidecar = bench.start(
        [call("index_path", path="src"), search, "done"], [search, "done"], [search, "done"]
    )
    session = sidecar.run("go", chatId="c")["sessionId"]
    loom.write_text("def weave(thread, width):\n    return thread * width\n")
    sidecar.run("again", chatId="c")
    loom.unlink()
    sidecar.run("once more", chatId="c")
    before, after, gone = outputs(sidecar, session)[1:]

    assert "return thread * 7" in before
    assert ("return thread * width" in after, "thread * 7" in after) == (True, False)
    assert "return thread * width" in gone


def test_people_search_and_index_by_commands(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    assert command(sidecar, "/index src")["data"]["sources"][0]["file"] == "src/add.py"
    hits = command(sidecar, "/search return a")["data"]["hits"]
    assert "def add(a, b):" in hits[0]["text"]


def test_apps_add_list_get_and_remove(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    added = sidecar.call("index/add", chatId="c", content=LOG, source="loom.log")

    listed = sidecar.call("index/list", chatId="c")["items"]
    assert [(item["id"], item["source"], item["kind"], item["lines"]) for item in listed] == [
        (added["sourceId"], "loom.log", "text", 400)
    ]
    (hits,) = found(sidecar, "step 77", source="loom.log", limit=1)
    assert "step 77:" in hits[0]["text"]
    assert sidecar.call("index/get", chatId="c", id=added["sourceId"])["text"] == LOG
    assert sidecar.call("index/remove", chatId="c", source="loom.log") == {"removed": 1}
    assert found(sidecar, "step 77") == [[]]


def test_no_chat_sees_anothers_texts(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    sidecar.call("chat/open", chatId="other")
    added = sidecar.call("index/add", chatId="other", content="the canary sings at noon", source="cage")

    assert found(sidecar, "canary noon", "canary OR sings", source="cage") == [[], []]
    assert found(sidecar, "canary", scope="project") == [[]]
    assert sidecar.refused("index/get", chatId="c", id=added["sourceId"]).data["name"] == "not_found"
    assert sidecar.refused("index/remove", chatId="c", id=added["sourceId"]).data["name"] == "not_found"
    assert sidecar.call("index/remove", chatId="c", source="cage") == {"removed": 0}
    ((hit,),) = found(sidecar, "canary", scope="all")
    assert hit["text"] == "the canary sings at noon"


def test_a_fork_finds_and_reads_the_outputs_that_came_along(bench: Workbench) -> None:
    sidecar = bench.start([call("run_command", command=NOISE), "done"])
    session = sidecar.run("go", chatId="c")["sessionId"]
    (run,) = tools(sidecar, session)
    sidecar.call("chat/fork", chatId="c", newChatId="fork")
    sidecar.call("chat/delete", chatId="c")
    source = run["output"]["source"]
    sidecar.wait_until(
        lambda: found(sidecar, "red thread", chatId="fork") != [[]], PATIENCE_S, "the fork finds nothing"
    )
    sidecar.close_stdin()
    sidecar.wait()
    sidecar = bench.spawn(
        model=bench.script([call("get_output", id=source, start_line=3000, end_line=3001), "done"])
    )
    session = sidecar.run("go", chatId="fork", projectPath=str(bench.project))["sessionId"]

    assert outputs(sidecar, session)[-1].splitlines()[1:] == ["3000", "ERROR loom 7: the red thread broke"]


def test_a_deleted_chat_takes_its_texts_along(bench: Workbench) -> None:
    sidecar = bench.start(["unused"])
    sidecar.call("chat/open", chatId="other")
    sidecar.call("index/add", chatId="other", content="the canary sings at noon", source="cage")
    sidecar.call("chat/delete", chatId="other")
    assert found(sidecar, "canary", scope="all") == [[]]


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("index/add", {"chatId": "c"}, "content"),
        ("index/add", {"chatId": "c", "content": "x"}, "source"),
        ("index/add", {"chatId": "c", "content": "x", "path": "y", "source": "z"}, "content"),
        ("index/add", {"path": "y"}, "projectPath"),
        ("index/search", {"queries": ["x"], "scope": "chat"}, "scope"),
        ("index/search", {"queries": ["x"], "scope": "project"}, "projectPath"),
        ("index/search", {"chatId": "c", "queries": []}, "queries"),
        ("index/search", {"chatId": "c", "queries": ["x"], "limit": 0}, "limit"),
        ("index/search", {"chatId": "c", "queries": ["x"], "maxTokens": 0}, "maxTokens"),
        ("index/get", {"chatId": "c", "id": "out:x", "lines": {"start": 5, "end": 1}}, "lines"),
        ("index/remove", {"chatId": "c"}, "id"),
        ("index/list", {"chatId": "c", "limit": 0}, "limit"),
        ("index/list", {"chatId": "c", "cursor": "x"}, "cursor"),
    ],
)
def test_a_wrong_call_names_the_field(bench: Workbench, method: str, params: Json, field: str) -> None:
    sidecar = bench.start(["unused"])
    refusal = sidecar.refused(method, **params)
    assert (refusal.code, refusal.detail("params")["field"]) == (-32602, field)


def test_an_index_that_is_off_keeps_nothing_and_harms_no_chat(bench: Workbench) -> None:
    (bench.spawn.folder / "off.toml").write_text("[index]\nenabled = false\n")
    sidecar = bench.spawn(
        "--config",
        str(bench.spawn.folder / "off.toml"),
        model=bench.script([call("run_command", command="seq 1 1500"), "done"]),
    )
    bench.open(sidecar)
    session = sidecar.run("go", chatId="c")["sessionId"]
    (run,) = tools(sidecar, session)

    assert "\n1000\n" in run["output"]["text"]
    assert "source" not in run["output"]
    assert "search_context" not in [tool["name"] for tool in sidecar.call("tools/list", chatId="c")["items"]]
    assert sidecar.refused("index/search", chatId="c", queries=["x"]).data["name"] == "precondition_failed"


def kept_block(sidecar: Sidecar, text: str, **more: Any) -> Json:
    manifest = sidecar.call("chat/context", **{"chatId": "c", "text": text, "includeText": True, **more})
    return next((block for block in manifest["blocks"] if block["id"] == "kept"), {"included": "absent"})


def test_what_a_prompt_asks_for_comes_back_out_of_the_index(bench: Workbench) -> None:
    lines = LOG.splitlines()
    (bench.project / "day.log").write_text("\n".join([*lines, "loom 7: the red thread is worn", *lines]))
    sidecar = bench.start([call("run_command", command="cat day.log"), "done"])
    sidecar.run("go", chatId="c")
    block = kept_block(sidecar, "Which loom has the worn thread?")

    assert (block["included"], block["gate"]) == ("full", "uncovered-terms")
    assert "loom 7: the red thread is worn" in block["text"]
    assert kept_block(sidecar, "Thank you very much!")["included"] == "absent"
    assert kept_block(sidecar, "Which loom broke?", context={"retrieval": "never"})["included"] == "absent"
    sidecar.call("chat/open", chatId="other", projectPath=str(bench.project))
    assert "red thread" not in str(kept_block(sidecar, "Which loom has the worn thread?", chatId="other"))


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_retrieval_always_holds_from_the_first_prompt_of_a_chat(bench: Workbench, turns: int) -> None:
    sidecar = bench.start()
    for _ in range(turns):
        sidecar.run("Hello", chatId="c")
    sidecar.call("index/add", content="The looms run at night.", source="notes", chatId="c")
    prompt = "Thanks for the looms"
    found = {
        switch: kept_block(sidecar, prompt, context={"retrieval": switch}) for switch in ("always", "never")
    }
    assert (found["always"]["gate"], found["always"]["included"]) == ("always", "full")
    assert found["never"]["included"] == "absent"


def test_an_indexed_file_comes_with_the_next_prompt_of_every_chat_of_the_project(bench: Workbench) -> None:
    (bench.project / "mill.txt").write_text("Opening hours\nThe mill grinds from seven to noon.\n")
    sidecar = bench.start(["unused"])
    sidecar.call("index/add", chatId="c", path="mill.txt")
    sidecar.call("index/add", chatId="c", content="def grind(): return 'canary'", source="c", kind="file")
    sidecar.call("chat/open", chatId="other", projectPath=str(bench.project))
    sidecar.call("chat/open", chatId="alone")
    sidecar.call("index/add", chatId="alone", content="The mill grinds at night.", source="alone")
    question = "When does the mill grind?"

    assert "from seven to noon" in kept_block(sidecar, question)["text"]
    assert "from seven to noon" in kept_block(sidecar, question, chatId="other")["text"]
    assert "canary" not in str(kept_block(sidecar, f"{question} What is grind()?", chatId="other"))
    alone = kept_block(sidecar, question, chatId="alone")["text"]
    assert ("at night" in alone, "from seven" in alone) == (True, False)


def test_an_indexed_file_comes_by_the_name_of_its_definition(bench: Workbench) -> None:
    (bench.project / "src" / "loom.py").write_text(
        "import os\n\n\ndef weave_cloth(thread):\n    return thread * 7\n"
    )
    sidecar = bench.start(["unused"])
    sidecar.call("index/add", chatId="c", path="src")
    block = kept_block(sidecar, "What does weave_cloth return?")
    assert "return thread * 7" in block["text"]
