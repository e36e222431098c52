"""Slash commands in a prompt: answered by the sidecar, without a model, once."""

from __future__ import annotations

from tests.blackbox.work.workbench import Json, Workbench, call
from tests.support.sidecar import Sidecar


def command(sidecar: Sidecar, text: str, chat: str = "c") -> Json:
    """The `command.result` of a command."""
    sent = sidecar.say(text, chatId=chat)
    assert sent["disposition"] == "command"
    result: Json = sidecar.wait_event(sent["sessionId"], lambda e: e["seq"] == sent["seq"])["data"]
    return result


def test_files_are_opened_pinned_and_closed_by_command(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    opened = command(sidecar, "/open src/*.py notes.txt --pin")
    assert [(file["path"], file["pinned"]) for file in opened["data"]["files"]] == [
        (bench.path("notes.txt"), True),
        (bench.path("src/add.py"), True),
    ]
    assert "| file | pinned | state |" in opened["markdown"]
    command(sidecar, "/unpin notes.txt")
    command(sidecar, "/close src/add.py")
    assert [file["path"] for file in command(sidecar, "/open:list")["data"]["files"]] == [
        bench.path("notes.txt")
    ]
    command(sidecar, "/pin src/add.py")
    assert command(sidecar, "/open:clear")["data"]["files"] == []


def test_brackets_are_part_of_a_name_when_a_file_has_it(bench: Workbench) -> None:
    for name in ("app/[id]/page.tsx", "app/{a,b}/x.ts", "app/i/page.tsx", "my own.txt", "what?.md"):
        (bench.project / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.project / name).write_text("text\n")
    sidecar = bench.start(["hi"])

    def names(text: str) -> list[str]:
        found = [file["path"] for file in command(sidecar, text)["data"]["files"]]
        return sorted(path.removeprefix(bench.path("") + "/") for path in found)

    assert names("/open app/[id]/page.tsx") == ["app/[id]/page.tsx"]
    assert names("/close app/[id]/page.tsx") == []
    assert names("/open app/[id]/*.tsx") == ["app/i/page.tsx"], "a pattern first"
    command(sidecar, "/open:clear")
    (bench.project / "app/i/page.tsx").unlink()
    assert names("/open app/[id]/*.tsx") == ["app/[id]/page.tsx"], "then the folder's name"
    assert names("/close app/[id]/*.tsx") == []
    assert names("/open my own.txt") == ["my own.txt"]
    assert names("/open what?.md 'app/{a,b}/x.ts'") == ["app/{a,b}/x.ts", "my own.txt", "what?.md"]
    (bench.project / "what?.md").unlink()
    assert names("/close what?.md") == ["app/{a,b}/x.ts", "my own.txt"], "also when it is gone"
    for text in ("/close app/[id]/page.tsx", "/close *.none", "/close notes.txt", "/open app/[no]/*.tsx"):
        assert sidecar.refused("prompt/send", chatId="c", promptId=text, text=text).code == -32002


def test_quotes_are_part_of_a_name_when_a_file_has_it(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    for name in ("it's.py", 'the "best" of.txt', "what's John's.md"):
        (bench.project / name).write_text("text\n")
        for text in (f"/open {name}", f"/pin {name}", f"/unpin {name}", f"/open --pin {name}"):
            files = command(sidecar, text)["data"]["files"]
            assert [file["path"] for file in files] == [bench.path(name)], text
        assert files[0]["pinned"]
        assert command(sidecar, f"/close {name}")["data"]["files"] == []
        assert command(sidecar, f"/index {name}")["data"]["sources"]
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="no", text="/open isn't.py")
    assert refusal.code == -32602
    assert "each quote closed" in str(refusal)
    for text in ("/open", "/open --pin", "/close"):
        assert sidecar.refused("prompt/send", chatId="c", promptId=text, text=text).code == -32602


def test_patches_are_listed_shown_reverted_and_cleared_by_command(bench: Workbench) -> None:
    steps = [
        call("read_file", path="notes.txt"),
        call("edit_file", path="notes.txt", old_string="second", new_string="2nd"),
    ]
    sidecar = bench.start([*steps, call("write_file", path="new.md", content="x\n"), "done"])
    sidecar.run("go", chatId="c")

    assert (
        "| 1 | new.md | New file: 1 line | write\\_file | applied |"
        in command(sidecar, "/patches:list")["markdown"]
    )
    assert "+2nd" in command(sidecar, "/patches:show 2")["markdown"]
    assert "+x" in command(sidecar, "/patches:show new.md")["markdown"]
    command(sidecar, "/patches:revert 2")
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"
    assert command(sidecar, "/patches:clear")["data"]["cleared"] == 2
    assert sidecar.refused("prompt/send", chatId="c", promptId="x", text="/patches:show 1").code == -32002


def test_a_command_runs_once_and_starts_no_turn(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    first = sidecar.call("prompt/send", chatId="c", promptId="p1", text="/open notes.txt")
    again = sidecar.call("prompt/send", chatId="c", promptId="p1", text="/open notes.txt")

    assert (first["disposition"], again["disposition"], again["seq"]) == (
        "command",
        "duplicate",
        first["seq"],
    )
    assert sidecar.call("chat/history", chatId="c")["turns"] == []


def test_an_unknown_command_is_an_error_that_names_the_nearest(bench: Workbench) -> None:
    sidecar = bench.start(["one"], ["two"], ["three"])
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="x", text="/patchs:list")
    assert (refusal.code, refusal.detail("nearest")) == (-32602, "patches:list")


def test_what_only_begins_with_a_slash_is_sent(bench: Workbench) -> None:
    sidecar = bench.start(["one"], ["two"], ["three"])
    texts = ["//open is a command", "/usr/bin/env is missing", "/ alone"]
    for text in texts:
        sidecar.run(text, chatId="c")
    off = sidecar.call("prompt/send", chatId="c", promptId="off", text="/help", commands="off")
    said = [turn["items"][0]["text"] for turn in sidecar.call("chat/history", chatId="c")["turns"]]

    assert off["disposition"] == "started"
    assert said == ["/open is a command", "/usr/bin/env is missing", "/ alone", "/help"]


def test_every_command_is_listed_with_its_arguments(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    listed = {item["name"]: item["arguments"] for item in sidecar.call("commands/list")["items"]}

    assert listed["open"] == "PATH|GLOB [--pin]"
    assert set(listed) == {
        "open", "open:list", "open:clear", "close", "pin", "unpin", "patches:list", "patches:show",
        "patches:clear", "patches:revert", "diff", "context", "compact", "rules", "session", "model", "stats", "help",
        "search", "index", "snapshots", "purge",
    }  # fmt: skip
    for name in ("help", "stats", "model", "diff", "session list", "context", "compact", "rules"):
        assert command(sidecar, f"/{name}")["markdown"]


def test_a_command_works_while_a_turn_runs(bench: Workbench) -> None:
    sidecar = bench.start([{"hang": True}])
    sidecar.say("go", chatId="c")
    assert command(sidecar, "/open notes.txt")["data"]["files"]
    assert sidecar.refused("prompt/send", chatId="c", promptId="x", text="/patches:revert 1").code == -32004
