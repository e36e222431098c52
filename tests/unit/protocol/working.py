"""The conversations in which a model works in a project: it calls tools, asks for permission, changes files."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.fake_provider.images import PNG

from .talk import Talk
from .transcripts import HOME, Json

PROJECT = f"{HOME}/engine"

MILL = "def add(a, b):\n    return a - b\n"
NOTES = "Looms weave.\nMills grind.\n"

LOOK = {
    "name": "look",
    "description": "What the user has selected.",
    "inputSchema": {"type": "object", "properties": {"where": {"type": "string"}}},
    "kind": "read",
}
PICTURE = {"type": "image", "mimeType": PNG.type, "data": PNG.data, "name": "editor.png"}
POINT = {
    "name": "point",
    "description": "Show the user a line of a file.",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    },
    "timeoutMs": 5000,
}


def tool(name: str, **input: Any) -> Json:
    return {"toolCall": {"name": name, "input": input}}


READ = tool("read_file", path="mill.py")
MEND = tool("edit_file", path="mill.py", old_string="a - b", new_string="a + b")
SHOW = tool("run_command", command="cat mill.py")
LOG = tool("write_file", path="docs/log.md", content="# Log\n\nThe mill adds again.\n")


def tools_and_permissions(talk: Talk) -> None:
    """What a tool may do is asked, allowed, denied, answered late, and decided by a rule from then on.

    No sandbox: a command's last line tells of it, and not every machine has one.
    """
    _begin(
        talk,
        [READ, MEND, SHOW, {"text": "The mill adds again."}],
        [LOG, {"text": "Then I leave the log alone."}],
        [SHOW, tool("run_command", command="rm mill.py"), {"text": "It stays."}],
    )
    talk.hello(capabilities={"permissions": True})
    talk.call("settings/write", scope="user", set={"sandbox": "off"})
    _open(talk, mode="ask")
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Mend the mill")
    talk.asked("permission/request")
    talk.reply(decision="allow_once")
    waits = talk.asked("permission/request")
    talk.call("chat/open", chatId="tab-7")
    talk.call("permission/answer", chatId="tab-7", permissionId=waits["permissionId"], decision="allow_chat")
    talk.fail(-32800, "Decided by permission/answer")
    talk.ended(sent)
    talk.call("permission/answer", chatId="tab-7", permissionId=waits["permissionId"], decision="deny_once")
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="Keep a log")
    talk.asked("permission/request")
    talk.reply(decision="deny_once", feedback="No logs, please.")
    talk.ended(sent)
    talk.call("permissionRules/list", chatId="tab-7")
    talk.call("permissionRules/set", chatId="tab-7", scope="project", effect="deny", rule="run(rm *)")
    talk.run("Show it, then throw it away", chatId="tab-7", promptId="p-3")
    listed = talk.call("permissionRules/list", chatId="tab-7", scope="project")
    talk.call("permissionRules/remove", chatId="tab-7", id=listed["items"][0]["id"])
    talk.call("permissionRules/set", chatId="tab-7", scope="chat", effect="allow", rule="jump(high)")


def app_tools_and_input(talk: Talk) -> None:
    """What only the app can tell: its own tools, its user's answers, the unsaved text of its editor."""
    colour = tool("ask_user", question="Which colour?", choices=["green", "brown"])
    name = tool("ask_user", question="What shall it be called?")
    _begin(
        talk,
        [tool("look", where="editor"), {"text": "You look at the mill."}],
        [tool("point", path="mill.py", line=2), {"text": "I cannot point at it."}],
        [colour, name, {"text": "A green mill, called Babbage."}],
        [READ, tool("read_file", path="notes.txt"), {"text": "You have not saved the mill."}],
    )
    talk.hello(capabilities={"permissions": True, "input": True, "buffers": True}, tools=[LOOK])
    _open(talk, mode="auto")
    talk.call("tools/list", chatId="tab-7")
    talk.call("engines/list")
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="What do I look at?")
    talk.asked("tool/call")
    talk.reply(content=[{"type": "text", "text": "mill.py, line 2"}, PICTURE])
    talk.ended(sent)
    talk.call("tools/offer", tools=[LOOK, POINT])
    talk.call("tools/offer", tools=[{**LOOK, "name": "read_file"}])
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="Point at it")
    talk.asked("tool/call")
    talk.fail(-32000, "The window is closed")
    talk.ended(sent)
    _inputs(talk)
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-4", text="Have I saved all?")
    talk.asked("fs/readBuffer")
    talk.reply(text=MILL.replace("-", "+"))
    talk.asked("fs/readBuffer")
    talk.reply(text=None)
    talk.ended(sent)


def _inputs(talk: Talk) -> None:
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-3", text="Make it mine")
    talk.asked("input/request")
    talk.reply(action="accept", values={"choice": "green"})
    waits = talk.asked("input/request")
    talk.call(
        "input/answer", chatId="tab-7", inputId=waits["inputId"], action="accept", values={"text": "Babbage"}
    )
    talk.fail(-32800, "Answered by input/answer")
    talk.ended(sent)
    talk.call("input/answer", chatId="tab-7", inputId=waits["inputId"], action="cancel")


def open_files(talk: Talk) -> None:
    """Files come into view by hand, by a glob and by the tools that read them, and stay over a restart."""
    _begin(talk, [READ, {"text": "It subtracts."}])
    talk.hello()
    _open(talk)
    talk.call("files/open", chatId="tab-7", path="notes.txt")
    talk.call("files/open", chatId="tab-7", glob="docs/*.md", pinned=True)
    talk.run("What does the mill do?", chatId="tab-7", promptId="p-1")
    talk.call("files/pin", chatId="tab-7", path="mill.py")
    talk.call("files/unpin", chatId="tab-7", path=f"{PROJECT}/docs/plan.md")
    talk.call("files/list", chatId="tab-7")
    talk.call("files/open", chatId="tab-7", path="loom.py")
    talk.call("files/open", chatId="tab-7", path="../home/secret.txt")
    talk.start(f"scripted:{HOME}/script.json")
    talk.hello()
    talk.call("chat/open", chatId="tab-7", ifMissing="fail")
    talk.call("files/close", chatId="tab-7", path="notes.txt")
    talk.call("files/clear", chatId="tab-7")
    talk.call("files/close", chatId="tab-7", path="notes.txt")


def patches(talk: Talk) -> None:
    """What tools changed is listed, shown, taken back, done again, taken elsewhere, and left alone after a stranger."""
    _begin(talk, [READ, MEND, LOG, {"text": "The mill adds again."}])
    talk.hello()
    _open(talk, mode="auto")
    sent = talk.run("Mend the mill and keep a log", chatId="tab-7", promptId="p-1")
    listed = talk.call("patches/list", chatId="tab-7")
    log, mended = listed["items"]
    talk.call("patches/show", chatId="tab-7", id=mended["id"])
    talk.call("git/diff", chatId="tab-7")
    talk.call("patches/export", chatId="tab-7", turnId=sent["turnId"])
    talk.call("patches/export", chatId="tab-7", path=f"{HOME}/mended.patch")
    talk.call("patches/revert", chatId="tab-7", turnId=sent["turnId"], dryRun=True)
    talk.call("patches/revert", chatId="tab-7", id=log["id"])
    talk.call("patches/apply", chatId="tab-7", id=log["id"])
    talk.outside({"engine/mill.py": MILL.replace("-", "*")})
    talk.call("patches/revert", chatId="tab-7", turnId=sent["turnId"])
    talk.call("patches/list", chatId="tab-7", path="mill.py")
    talk.call("patches/clear", chatId="tab-7")
    talk.call("patches/list", chatId="tab-7")


def branches(talk: Talk) -> None:
    """A chat goes back before a turn, its files with it, and forth again; a fork goes on by itself."""
    _begin(talk, [READ, MEND, {"text": "Mended."}], [LOG, {"text": "Logged."}], [{"text": "Hello, fork."}])
    talk.hello()
    _open(talk, mode="auto")
    first = talk.run("Mend the mill", chatId="tab-7", promptId="p-1")
    second = talk.run("Keep a log", chatId="tab-7", promptId="p-2")
    before: Json = {"chatId": "tab-7", "before": {"turnId": second["turnId"]}, "files": "restore"}
    talk.call("chat/rewind", **before, dryRun=True)
    talk.call("chat/rewind", **before)
    talk.call("chat/history", chatId="tab-7")
    talk.call("chat/rewind", chatId="tab-7", to={"turnId": second["turnId"]}, files="restore")
    talk.outside({"engine/docs/log.md": "Mine.\n"})
    talk.call("chat/rewind", **before)
    talk.call("chat/rewind", chatId="tab-7", before={"turnId": "t-unknown"})
    talk.call("chat/fork", chatId="tab-7", newChatId="tab-8", at={"turnId": first["turnId"]})
    talk.call("chat/fork", chatId="tab-7", newChatId="tab-8")
    talk.run("Hello", chatId="tab-8", promptId="p-3")
    talk.call("patches/list", chatId="tab-8")


def commands(talk: Talk) -> None:
    """A prompt that begins with a slash is answered without a model."""
    _begin(talk, [READ, MEND, {"text": "Mended."}])
    talk.hello()
    _open(talk, mode="auto")
    talk.call("commands/list")
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="/open notes.txt --pin")
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="/open notes.txt --pin")
    talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="/session save before")
    talk.run("Mend the mill", chatId="tab-7", promptId="p-3")
    talk.call("prompt/send", chatId="tab-7", promptId="p-4", text="/patches:list")
    talk.call("prompt/send", chatId="tab-7", promptId="p-5", text="/session load before --files")
    talk.call("prompt/send", chatId="tab-7", promptId="p-6", text="/patchs:list")
    talk.run("//open is a command", chatId="tab-7", promptId="p-7")
    talk.run("/help", chatId="tab-7", promptId="p-8", commands="off")


def context(talk: Talk) -> None:
    """What the model is sent, and how an old part of a chat is replaced by a summary and comes back."""
    _begin(talk)
    talk.hello()
    _open(talk)
    talk.outside({"engine/AGENTS.md": "Write tests first.\n"})
    for number, text in enumerate(("Let us mend the mill", "Always answer in English", "Thank you"), 1):
        sent = talk.run(text, chatId="tab-7", promptId=f"p-{number}")
    talk.call("files/open", chatId="tab-7", path="mill.py")
    talk.call("chat/context", chatId="tab-7", text="What does add in mill.py do?")
    talk.call("chat/context", chatId="tab-7", turnId=sent["turnId"])
    talk.call("rules/list", chatId="tab-7")
    talk.call("chat/compact", chatId="tab-7", dryRun=True)
    talk.call("chat/compact", chatId="tab-7", instructions="Keep what is said of mills")
    talk.call("chat/context", chatId="tab-7", text="Go on", budget=500)
    talk.call("chat/uncompact", chatId="tab-7")
    talk.call("chat/uncompact", chatId="tab-7")
    talk.call("chat/compact", chatId="tab-7", postponeTurns=20)


def index(talk: Talk) -> None:
    """What is kept out of the window: a long output by its preview; texts and files that are added, found, removed."""
    _begin(
        talk,
        [tool("list_dir"), tool("search_context", queries=["grind"]), {"text": "Mills do."}],
    )
    talk.hello()
    _open(talk, mode="auto")
    added = talk.call("index/add", chatId="tab-7", content="WARN loom 7: thread broke\n", source="loom.log")
    talk.call("index/add", chatId="tab-7", path="notes.txt")
    talk.call("index/search", chatId="tab-7", queries=["thread", "nothing of the kind"], maxTokens=600)
    talk.call("index/search", chatId="tab-7", queries=["grind"])
    talk.call("index/get", chatId="tab-7", id=added["sourceId"], lines={"start": 1, "end": 1})
    talk.call("index/chunks", chatId="tab-7", id=added["sourceId"], includeText=True, limit=2)
    talk.call("index/list", chatId="tab-7")
    talk.run("What do mills do?", chatId="tab-7", promptId="p-1")
    talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="/search thread")
    talk.call("index/remove", chatId="tab-7", source="loom.log")
    talk.call("index/get", chatId="tab-7", id=added["sourceId"])
    talk.call("index/search", queries=["grind"], scope="chat")


def snapshots(talk: Talk) -> None:
    """What a session has come to: asked for, kept when its process ends, and sent along once at a wish."""
    steps = [("Read it", "completed"), ("Mend it", "in_progress"), ("Log it", "pending")]
    plan = tool("update_plan", plan=[{"step": step, "status": status} for step, status in steps])
    _begin(talk, [plan, READ, MEND, {"text": "The mill adds again."}])
    talk.hello()
    _open(talk, mode="auto")
    talk.run("Mend the mill", chatId="tab-7", promptId="p-1")
    talk.call("snapshots/list", chatId="tab-7")
    talk.call("snapshots/show", chatId="tab-7", id="workflow")
    talk.call("files/clear", chatId="tab-7")
    talk.start(f"scripted:{HOME}/script.json")
    talk.hello()
    talk.call("chat/open", chatId="tab-7", ifMissing="fail")
    kept = talk.call("snapshots/list", chatId="tab-7")["items"][-1]
    talk.call("snapshots/show", chatId="tab-7", id=kept["id"])
    talk.call("snapshots/restore", chatId="tab-7", id=kept["id"])
    talk.call("chat/context", chatId="tab-7", text="Go on")
    talk.call("snapshots/show", chatId="tab-7", id="sn-unknown")


def _begin(talk: Talk, *replies: list[Json]) -> None:
    """A process whose model plays these replies, and a small project under git."""
    script = {"onExhausted": "echo", "replies": [{"steps": steps} for steps in replies]}
    files = {
        "script.json": json.dumps(script),
        "engine/mill.py": MILL,
        "engine/notes.txt": NOTES,
        "engine/docs/plan.md": "# Plan\n",
    }
    talk.start(f"scripted:{HOME}/script.json", files=files, repository="engine")


def _open(talk: Talk, mode: str | None = None) -> None:
    config = {"config": {"mode": mode}} if mode else {}
    talk.call("chat/open", chatId="tab-7", projectPath=PROJECT, **config)
