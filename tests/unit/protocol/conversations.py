"""The conversations that are recorded: what a client says, step by step. A tour of the contract."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from tests.support.pictures import png

from . import working
from .hooking import hooks
from .talk import Talk
from .transcripts import HOME

SCRIPT = """{
  "onExhausted": "echo",
  "replies": [{"match": "slow", "steps": [{"text": "Let me "}, {"hang": true}]}]
}
"""

FAILING = """{
  "replies": [
    {"match": "Why", "steps": [{"error": {"reason": "overloaded", "message": "Too busy", "retryAfterMs": 20}}]},
    {"match": "Why", "steps": [{"thought": "Threads cross."}, {"text": "Because threads cross."}]},
    {"match": "who", "steps": [{"text": "It was"}, {"error": {"reason": "refused", "message": "Not that"}}]}
  ]
}
"""

NOTE = "Ada's engine weaves algebra.\n"


def hello_and_stream(talk: Talk) -> None:
    talk.start()
    talk.call("ping")
    talk.hello()
    talk.call("chat/open", chatId="tab-7")
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Hello there")
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Hello there")
    talk.call("chat/history", chatId="tab-7")
    talk.call("chat/close", chatId="tab-7")
    talk.call("shutdown")
    talk.notify("exit")


def resume_after_restart(talk: Talk) -> None:
    talk.start()
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Remember the punch cards")
    talk.start()
    talk.hello()
    talk.call("chat/open", chatId="tab-7", ifMissing="fail")
    talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="And the looms")


def cursor_and_replay(talk: Talk) -> None:
    talk.start()
    talk.hello()
    opened = talk.call("chat/open", chatId="tab-7")
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="One two three")
    start = {"epoch": opened["epoch"], "seq": 0}
    talk.call("events/read", chatId="tab-7", after=start, limit=3)
    talk.call("events/read", chatId="tab-7", after={"epoch": opened["epoch"], "seq": 6})
    talk.call("events/read", chatId="tab-7", after={"epoch": opened["epoch"], "seq": 999})
    talk.start()
    talk.hello()
    talk.call("chat/open", chatId="tab-7", after={"epoch": opened["epoch"], "seq": 4})
    talk.call("chat/open", chatId="tab-7")
    talk.call("chat/close", chatId="tab-7")
    talk.call("chat/open", chatId="tab-7", after={"epoch": "unknown", "seq": 4})


def queue_and_cancel(talk: Talk) -> None:
    """The scripted model says two words to a slow question and then nothing more, until it is stopped."""
    talk.start(f"scripted:{HOME}/script.json", files={"script.json": SCRIPT})
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="A slow question")
    talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="And what of lumes?")
    talk.call("prompt/send", chatId="tab-7", promptId="p-3", text="Never mind")
    talk.call("prompt/send", chatId="tab-7", promptId="p-4", text="Now or never", delivery="reject")
    talk.call("prompt/list", chatId="tab-7")
    talk.call("prompt/edit", chatId="tab-7", promptId="p-2", text="And what of looms?", revision=1)
    talk.call("prompt/remove", chatId="tab-7", promptId="p-3")
    talk.call("turn/cancel", chatId="tab-7")
    talk.call("prompt/resume", chatId="tab-7")
    talk.call("turn/cancel", chatId="tab-7")


def steer_and_interrupt(talk: Talk) -> None:
    talk.start(f"scripted:{HOME}/script.json", files={"script.json": SCRIPT})
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="A slow question")
    talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="In short, please", delivery="steer")
    talk.call("prompt/send", chatId="tab-7", promptId="p-3", text="Forget it", delivery="interrupt")
    talk.call("chat/history", chatId="tab-7")


def failures_and_thoughts(talk: Talk) -> None:
    """A provider is overloaded, is asked again and thinks before it answers; later it refuses for good."""
    talk.start(f"scripted:{HOME}/script.json", files={"script.json": FAILING})
    talk.hello()
    talk.run("Why do looms weave?", chatId="tab-7", promptId="p-1")
    talk.run("And who wove first?", chatId="tab-7", promptId="p-2")


def edit_and_resend(talk: Talk) -> None:
    talk.start()
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Good morning")
    sent = talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="What is a lume")
    talk.call(
        "prompt/send",
        chatId="tab-7",
        promptId="p-3",
        text="What is a loom",
        replace={"turnId": sent["turnId"]},
    )
    talk.call("turn/retry", chatId="tab-7", promptId="p-4", **{"from": "start"})
    talk.call("chat/history", chatId="tab-7")
    talk.call("chat/history", chatId="tab-7", around={"turnId": sent["turnId"]})


def chats(talk: Talk) -> None:
    talk.start()
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Tell me of punch cards")
    talk.call("prompt/send", chatId="tab-8", promptId="p-1", text="Tell me of looms")
    talk.call("chat/rename", chatId="tab-7", title="Punch cards")
    talk.call("chat/configure", chatId="tab-7", set={"meta": {"colour": "green"}})
    talk.call("chat/list", limit=20)
    talk.call("chat/search", query="punch cards", limit=5)
    talk.call("chat/archive", chatId="tab-8", archived=True)
    talk.call("chat/list", archived=True)
    talk.call("chat/close", chatId="tab-7")
    talk.call("chat/delete", chatId="tab-7")
    talk.call("chat/delete", chatId="tab-7")
    talk.call("prompt/send", chatId="tab-7", promptId="p-2", text="Still there?")
    talk.call("chat/open", chatId="tab-7")


def blobs(talk: Talk) -> None:
    talk.start()
    talk.hello()
    data = base64.b64encode(png()).decode()
    kept = talk.call("blob/put", data=data, mimeType="image/png", name="engine.png")
    talk.call("blob/read", blobId=kept["blobId"], offset=0, length=8)
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "blobId": kept["blobId"], "mimeType": "image/png"},
    ]
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", content=content)
    talk.call("chat/history", chatId="tab-7")


def import_and_export(talk: Talk) -> None:
    talk.start()
    talk.hello()
    turns = '{"role":"user","text":"Hello"}\n{"role":"assistant","text":"Hi."}\n'
    talk.call("chat/import", chatId="old", data=turns)
    talk.call("chat/import", chatId="old", data=turns)
    talk.call("chat/export", chatId="old", format="markdown")
    exported = talk.call("chat/export", chatId="old")
    talk.call("chat/import", chatId="copy", data=exported["data"])
    talk.call("chat/export", chatId="copy", path=f"{HOME}/copy.jsonl")


def history(talk: Talk) -> None:
    """A session of another program: what it would bring, the import, and the same again."""
    said = {"type": "user", "uuid": "a", "timestamp": "2026-11-15T23:12:05.173Z", "cwd": "/engine"}
    answered = {**said, "type": "assistant", "uuid": "b", "parentUuid": "a"}
    records = [
        said | {"message": {"role": "user", "content": "How wide is the mill?"}},
        answered | {"message": {"role": "assistant", "content": [{"type": "text", "text": "Twelve feet."}]}},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    talk.start(files={"sessions/5e0f.jsonl": lines + "{half\n"})
    talk.hello()
    request = {"platform": "claude-code", "path": f"{HOME}/sessions"}
    talk.call("history/import", **request, dryRun=True)
    talk.call("history/import", **request)
    talk.call("history/import", **request)
    talk.call("chat/open", chatId="claude-code:5e0f")


def settings(talk: Talk) -> None:
    talk.start()
    talk.hello()
    talk.call("settings/read", scope="user")
    talk.call("settings/write", scope="user", set={"session.max_steps": 20})
    talk.call("settings/write", scope="user", set={"session.max_stops": 20})
    talk.call("settings/read")
    talk.call("project/trust", path=f"{HOME}/home", trusted=True)
    talk.call("models/list", provider="echo")
    talk.call("models/fetch", name="smollm3")


def providers(talk: Talk) -> None:
    """A settings page: who can answer, a key for one, an address for another, and whether they answer."""
    talk.start()
    talk.hello()
    talk.call("providers/list")
    talk.call("providers/configure", provider="anthropic", apiKey="sk-example-0123456789")
    talk.call("providers/configure", provider="anthropic", apiKey="two words")
    talk.call("providers/configure", provider="nobody", apiKey="sk-example-0123456789")
    talk.call("providers/configure", provider="anthropic", apiKey=None)
    nowhere = {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-example-0123456789"}
    own = {f"providers.lmstudio.{key}": value for key, value in nowhere.items()}
    talk.call("settings/write", scope="user", set=own)
    talk.call("providers/test", provider="lmstudio")
    talk.call("providers/configure", provider="lmstudio", baseUrl="http://127.0.0.1:1234/v1")


def system(talk: Talk) -> None:
    talk.start()
    talk.call("rpc.discover")
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Hello there")
    talk.call("stats/read")
    talk.call("doctor/run")
    talk.call("doctor/report", path=f"{HOME}/report.zip")
    talk.call("shutdown", graceMs=0)
    talk.call("ping")


def custody(talk: Talk) -> None:
    """What is kept, for whom, and how it goes: figures, a folder that was moved, purges."""
    talk.start(files={"engine/notes.txt": NOTE, "work/engine/notes.txt": NOTE})
    talk.hello()
    engine, moved = f"{HOME}/engine", f"{HOME}/work/engine"
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Hello there", projectPath=engine)
    talk.call("prompt/send", chatId="tab-8", promptId="p-1", text="Hello again", projectPath=engine)
    talk.call("stats/read", scope="chat", chatId="tab-7")
    talk.call("projects/rebind", **{"from": engine, "to": moved})
    talk.call("projects/rebind", **{"from": engine, "to": f"{HOME}/nowhere"})
    talk.call("data/purge", chatId="tab-7")
    talk.call("data/purge", scope="project", confirm=True)
    talk.call("data/purge", chatId="tab-7", confirm=True)
    talk.call("data/purge", scope="project", projectPath=moved, dryRun=True)
    talk.call("data/purge", scope="project", projectPath=moved, confirm=True)
    talk.call("stats/read")


def errors(talk: Talk) -> None:
    talk.start()
    talk.call("chat/list")
    talk.raw('{"jsonrpc":"2.0","id":1,"method":')
    talk.raw('[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
    talk.call("initialize", protocol="sidecar", versions=[99], client={"name": "my-app"})
    talk.hello()
    talk.hello()
    talk.call("chat/opne", chatId="tab-7")
    talk.call("chat/open", chatID="tab-7")
    talk.call("chat/open", chatId=7)
    talk.raw('{"jsonrpc":"2.0","id":"positional","method":"chat/open","params":["tab-7"]}')
    talk.call("chat/open", chatId="")
    talk.call("chat/open", chatId="tab-7", ifMissing="fail")
    talk.call("prompt/send", chatId="tab-7", promptId="p-1")
    talk.notify("no/such/notification")


def headers(talk: Talk) -> None:
    talk.start(framing="headers")
    talk.hello()
    talk.call("prompt/send", chatId="tab-7", promptId="p-1", text="Grüße, 世界 🙂")


CONVERSATIONS: dict[str, Callable[[Talk], None]] = {
    "01-hello-and-stream": hello_and_stream,
    "02-resume-after-restart": resume_after_restart,
    "03-cursor-and-replay": cursor_and_replay,
    "04-queue-and-cancel": queue_and_cancel,
    "05-steer-and-interrupt": steer_and_interrupt,
    "06-edit-and-resend": edit_and_resend,
    "07-chats": chats,
    "08-blobs": blobs,
    "09-import-and-export": import_and_export,
    "10-settings": settings,
    "11-system": system,
    "12-errors": errors,
    "13-headers": headers,
    "14-providers": providers,
    "15-tools-and-permissions": working.tools_and_permissions,
    "16-app-tools-and-input": working.app_tools_and_input,
    "17-open-files": working.open_files,
    "18-patches": working.patches,
    "19-branches": working.branches,
    "20-commands": working.commands,
    "21-context": working.context,
    "22-custody": custody,
    "23-index": working.index,
    "24-hooks": hooks,
    "25-snapshots": working.snapshots,
    "26-failures-and-thoughts": failures_and_thoughts,
    "27-history": history,
}
