"""A stand-in for the runtime of GitHub Copilot's SDK: `python copilot_runtime.py FOLDER`, then the SDK's own options.

It has the recorded behaviour: "not found" has no code of its own, and creating a session over one of another process
succeeds with an empty thread. A prompt is a line of orders, as for `acp_agent.py`: say, said, run, strange, die, wait.
Sessions are files in FOLDER. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from pathlib import Path
from queue import Queue
from typing import Any

Json = dict[str, Any]


class Runtime:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.threads: dict[str, list[str]] = {}
        """What the model would be sent, of the sessions of this process."""
        self.decisions: Queue[str] = Queue()
        self.aborted = threading.Event()

    def send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sys.stdout.buffer.flush()

    def event(self, session: str, kind: str, **data: Any) -> None:
        event = {
            "id": str(uuid.uuid4()),
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "parentId": None,
            "type": kind,
            "data": data,
        }
        self.send({"method": "session.event", "params": {"sessionId": session, "event": event}})

    def serve(self) -> None:
        while (header := sys.stdin.buffer.readline()).startswith(b"Content-Length:"):
            size = int(header.split(b":")[1])
            while sys.stdin.buffer.readline().strip():
                pass
            message = json.loads(sys.stdin.buffer.read(size))
            if "method" in message and "id" in message:
                self.answer(message)

    def answer(self, message: Json) -> None:
        method, params = message["method"], message.get("params") or {}
        try:
            result = self.result(method, params)
        except LookupError as error:
            error_object = {"code": -32603, "message": f"Request {method} failed with message: {error}"}
            self.send({"id": message["id"], "error": error_object})
            return
        self.send({"id": message["id"], "result": result})
        if method == "session.send":
            threading.Thread(
                target=self.play, args=(params["sessionId"], params["prompt"]), daemon=True
            ).start()

    def result(self, method: str, params: Json) -> Json:
        session = str(params.get("sessionId"))
        if method == "connect":
            return {"ok": True, "protocolVersion": 3, "version": "1.0.85"}
        if method == "ping":
            return {"message": "pong: ", "timestamp": int(time.time() * 1000), "protocolVersion": 3}
        if method == "session.getMetadata":
            times = {"startTime": "2026-11-19T00:00:00Z", "modifiedTime": "2026-11-19T00:00:00Z"}
            known = {"sessionId": session, **times, "isRemote": False}
            return {"session": known} if self.file(session).exists() else {}
        if method == "session.create":
            if self.file(session).exists() and session not in self.threads:
                (self.folder / "created-over").touch()
            self.threads[session] = []
            self.file(session).touch()
            return {"sessionId": session}
        if method == "session.resume":
            if not self.file(session).exists():
                raise LookupError(f"Failed to load session events: Session not found: {session}")
            self.threads[session] = self.said(session)
            return {"sessionId": session}
        if method == "session.getMessages":
            return {"events": [self.message(text) for text in self.said(session)]}
        if method == "session.abort":
            self.aborted.set()
        if method.endswith("handlePendingPermissionRequest"):
            self.decisions.put(params["result"]["kind"])
            return {"success": True}
        return {"messageId": str(uuid.uuid4())} if method == "session.send" else {}

    def file(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def said(self, session: str) -> list[str]:
        return [json.loads(line) for line in self.file(session).read_text().splitlines()]

    def message(self, text: str) -> Json:
        return {
            "id": str(uuid.uuid4()),
            "timestamp": "2026-11-19T00:00:00Z",
            "parentId": None,
            "type": "user.message",
            "data": {"content": text},
        }

    def play(self, session: str, prompt: str) -> None:
        self.aborted.clear()
        self.threads[session].append(prompt)
        with self.file(session).open("a") as file:
            file.write(json.dumps(prompt) + "\n")
        order, _, rest = prompt.splitlines()[-1].partition(" ")
        getattr(self, f"do_{order}")(session, rest)
        self.event(session, "assistant.usage", model="fake", inputTokens=12, outputTokens=3)
        self.event(session, "session.idle")

    def do_say(self, session: str, text: str) -> None:
        self.event(session, "assistant.message_delta", deltaContent=text, messageId="m")
        # The same text a second time, in another event.
        self.event(session, "assistant.streaming_delta", totalResponseSizeBytes=len(text))

    def do_said(self, session: str, _: str) -> None:
        self.do_say(session, "\n---\n".join(self.threads[session]))

    def do_strange(self, session: str, text: str) -> None:
        self.event(session, "weather.changed", sky=text)

    def do_run(self, session: str, command: str) -> None:
        call = f"call-{uuid.uuid4().hex[:8]}"
        self.event(
            session, "tool.execution_start", toolCallId=call, toolName="bash", arguments={"command": command}
        )
        request = {
            "kind": "shell",
            "toolCallId": call,
            "fullCommandText": command,
            "intention": "A test",
            "commands": [],
            "possiblePaths": [],
            "possibleUrls": [],
            "hasWriteFileRedirection": False,
            "canOfferSessionApproval": False,
        }
        self.event(session, "permission.requested", requestId=call, permissionRequest=request)
        decision = self.decisions.get()
        success = decision == "approve-once"
        self.event(
            session, "tool.execution_complete", toolCallId=call, success=success, result={"content": "ran"}
        )
        self.do_say(session, decision)

    def do_wait(self, session: str, _: str) -> None:
        self.do_say(session, "half")
        self.aborted.wait()

    def do_die(self, session: str, _: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    Runtime(where).serve()
