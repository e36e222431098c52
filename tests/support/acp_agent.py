"""A small agent of the Agent Client Protocol, which a test starts as an engine: `python acp_agent.py FOLDER TRAITS`.

Each line of a prompt's last text block is an order, such as `say Hello` or `write notes.txt New text`; the functions
named `do_…` are all there are. Sessions are files in FOLDER, so another process can resume them. TRAITS, joined by
commas, are what real agents have been seen to do: see `TRAITS`. Standard library only: its start is a part of tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from queue import Queue
from typing import Any

Json = dict[str, Any]

TRAITS = {
    "no-resume": "offers neither session/resume nor session/load",
    "load": "offers session/load instead of session/resume, and sends the whole session again before it answers",
    "load-fails": "offers session/load, which fails, as that of Gemini CLI does within a minute",
    "early-updates": "sends an update before it answers session/new, as Copilot CLI does",
    "stays": "does not exit at the end of its input, and starts a child that does not either",
    "auth": "wants a login before it makes a session",
    "two-always": "offers two options of the kind allow_always, as Gemini CLI does",
    "log-on-stdout": "prints lines that are no messages",
    "no-start": "ends at its start, with a last word",
    "silent": "answers nothing",
    "ignores-cancel": "goes on after session/cancel",
    "root-refused": "refuses session/new, as Claude Code does for root",
}


class Agent:
    def __init__(self, folder: Path, traits: set[str]) -> None:
        self.folder = folder
        self.traits = traits
        self.waiting: dict[int, Queue[Json]] = {}
        self.next_id = 0
        self.lock = threading.Lock()
        self.cancelled = threading.Event()
        self.logged_in = False
        self.session = ""
        self.cwd = Path(".")
        self.said: list[str] = []
        self.mode = "free"
        self.model = "own"

    # The wire.

    def send(self, message: Json) -> None:
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def update(self, **update: Any) -> None:
        self.send({"method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def ask(self, method: str, **params: Any) -> Json:
        """Ask the client and wait; an error of the client is `{"error": …}`."""
        with self.lock:
            self.next_id += 1
            id = self.next_id
            self.waiting[id] = Queue()
        self.send({"id": id, "method": method, "params": {"sessionId": self.session, **params}})
        answer = self.waiting[id].get()
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.waiting[message["id"]].put(message)
            elif message["method"] == "session/cancel":
                self.cancelled.set()
            elif "id" in message and message["method"] == "session/prompt":
                threading.Thread(target=self.answer, args=(message,), daemon=True).start()
            elif "id" in message and "silent" not in self.traits:
                self.answer(message)

    def answer(self, message: Json) -> None:
        handler = {
            "initialize": self.initialize,
            "authenticate": self.authenticate,
            "session/new": self.new,
            "session/resume": self.resume,
            "session/load": self.load,
            "session/prompt": self.prompt,
            "session/set_mode": self.set_mode,
            "session/set_config_option": self.set_option,
        }[message["method"]]
        try:
            self.send({"id": message["id"], "result": handler(message["params"])})
        except PermissionError as error:
            self.send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})
        except LookupError as error:
            self.send(
                {"id": message["id"], "error": {"code": -32603, "message": str(error), "data": "a text"}}
            )

    # Methods.

    def initialize(self, params: Json) -> Json:
        (self.folder / "client.json").write_text(json.dumps(params))
        if "log-on-stdout" in self.traits:
            sys.stdout.write("Loading…\n\n[info] ready\n")
        resumes = not {"no-resume", "load", "load-fails"} & self.traits
        return {
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": bool({"load", "load-fails"} & self.traits),
                "promptCapabilities": {"image": True, "embeddedContext": True},
                "sessionCapabilities": {"resume": {}, "fork": {}} if resumes else {},
            },
            "authMethods": [{"id": "key", "name": "A key"}],
            "unknownMember": True,
        }

    def authenticate(self, params: Json) -> Json:
        self.logged_in = True
        return {}

    def new(self, params: Json) -> Json:
        if "auth" in self.traits and not self.logged_in:
            raise PermissionError("Authentication required")
        if "root-refused" in self.traits:
            raise LookupError("--dangerously-skip-permissions cannot be used with root")
        self.session, self.cwd, self.said = f"s-{uuid.uuid4().hex[:8]}", Path(params["cwd"]), []
        if "early-updates" in self.traits:
            self.update(sessionUpdate="available_commands_update", availableCommands=[])
        self.keep()
        modes = {"currentModeId": "free", "availableModes": [{"id": "free"}, {"id": "asking"}]}
        return {
            "sessionId": self.session,
            "modes": modes,
            "configOptions": [{"id": "m", "category": "model", "type": "select"}],
        }

    def resume(self, params: Json) -> Json:
        file = self.folder / f"{params['sessionId']}.json"
        if not file.exists():
            raise LookupError(f"Session not found: {params['sessionId']}")
        self.session, self.cwd = params["sessionId"], Path(params["cwd"])
        self.said = json.loads(file.read_text())
        return {}

    def load(self, params: Json) -> Json:
        if "load-fails" in self.traits:
            raise LookupError("No previous sessions found for this project")
        self.resume(params)
        for text in self.said:
            self.update(sessionUpdate="user_message_chunk", content={"type": "text", "text": text})
            self.update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "replayed"})
        return {}

    def set_mode(self, params: Json) -> Json:
        self.mode = params["modeId"]
        return {}

    def set_option(self, params: Json) -> Json:
        if params["value"] == "unknown":
            raise LookupError("No such model")
        self.model = params["value"]
        return {}

    def prompt(self, params: Json) -> Json:
        self.cancelled.clear()
        texts = [block.get("text", f"[{block['type']}]") for block in params["prompt"]]
        self.said.append("\n".join(texts))
        self.keep()
        for line in texts[-1].splitlines():
            order, _, rest = line.partition(" ")
            getattr(self, f"do_{order}")(rest)
            if self.cancelled.is_set():
                return {"stopReason": "cancelled"}
        return {"stopReason": "end_turn", "usage": {"inputTokens": 12, "outputTokens": 3, "totalTokens": 15}}

    def keep(self) -> None:
        (self.folder / f"{self.session}.json").write_text(json.dumps(self.said))

    # Orders.

    def say(self, text: str) -> None:
        self.update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})

    def do_say(self, text: str) -> None:
        self.say(text)

    def do_think(self, text: str) -> None:
        self.update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": text})

    def do_stream(self, count: str) -> None:
        for number in range(int(count)):
            self.say(f"{number} ")

    def do_pace(self, rest: str) -> None:
        """Stream so many updates, one each so many milliseconds."""
        count, milliseconds = rest.split()
        for number in range(int(count)):
            self.say(f"{number} ")
            time.sleep(int(milliseconds) / 1000)

    def do_session(self, _: str) -> None:
        self.say(self.session)

    def do_choices(self, _: str) -> None:
        self.say(f"{self.mode} {self.model}")

    def do_said(self, _: str) -> None:
        """Say all that the session has been told."""
        self.say("\n---\n".join(self.said))

    def do_plan(self, text: str) -> None:
        self.update(
            sessionUpdate="plan", entries=[{"content": text, "status": "in_progress", "priority": "high"}]
        )

    def do_strange(self, text: str) -> None:
        self.update(sessionUpdate="weather_update", sky=text)

    def do_usage(self, _: str) -> None:
        self.update(sessionUpdate="usage_update", used=500, size=1000)

    def do_look(self, path: str) -> None:
        """A tool call without a permission."""
        self.start("read", f"Read {path}", {"path": path})
        self.end(content=[{"type": "content", "content": {"type": "text", "text": f"seen {path}"}}])

    def do_run(self, command: str) -> None:
        """A command that the agent runs itself, after asking."""
        self.start("execute", command, {"command": command})
        if self.may("execute", command, {"command": command}):
            done = subprocess.run(
                command, shell=True, cwd=self.cwd, capture_output=True, text=True, check=False
            )
            self.end(rawOutput={"output": done.stdout, "exit_code": done.returncode})
            self.say("ran")
        else:
            self.end("failed")
            self.say("denied")

    def do_tool(self, name: str) -> None:
        """A tool of the agent that is neither a file nor a command."""
        self.start("other", name, {"about": name})
        allowed = self.may("other", name, {"about": name})
        self.end("completed" if allowed else "failed", rawOutput="done")
        self.say("allowed" if allowed else "denied")

    def do_edit(self, rest: str) -> None:
        """Ask, then write by the client, as a part of the call."""
        path, _, text = rest.partition(" ")
        diff = [{"type": "diff", "path": str(self.cwd / path), "oldText": None, "newText": text}]
        self.start("edit", f"Edit {path}", {"path": path}, content=diff)
        if self.may("edit", f"Edit {path}", {"path": path}, content=diff):
            answer = self.ask("fs/write_text_file", path=str(self.cwd / path), content=text)
            self.end("failed" if "error" in answer else "completed", content=diff)
            self.say(answer.get("error", {}).get("message", "edited"))
        else:
            self.end("failed")
            self.say("denied")

    def do_write(self, rest: str) -> None:
        path, _, text = rest.partition(" ")
        answer = self.ask("fs/write_text_file", path=os.path.join(self.cwd, path), content=text)
        self.say(answer.get("error", {}).get("message", "written"))

    def do_read(self, path: str) -> None:
        answer = self.ask("fs/read_text_file", path=os.path.join(self.cwd, path))
        self.say(answer.get("error", {}).get("message") or answer["content"])

    def do_change(self, rest: str) -> None:
        """Change a file behind the client's back."""
        path, _, text = rest.partition(" ")
        self.start("edit", f"Change {path}", {"path": path})
        (self.cwd / path).write_text(text)
        self.end()

    def do_remove(self, path: str) -> None:
        (self.cwd / path).unlink()

    def do_terminal(self, command: str) -> None:
        made = self.ask("terminal/create", command=command, cwd=str(self.cwd))
        if "error" in made:
            self.say(made["error"]["message"])
            return
        terminal = {"terminalId": made["terminalId"]}
        status = self.ask("terminal/wait_for_exit", **terminal)
        shown = self.ask("terminal/output", **terminal)
        self.ask("terminal/release", **terminal)
        self.say(f"{shown['output']}exit {status['exitCode']}")

    def do_kill_terminal(self, command: str) -> None:
        made = self.ask("terminal/create", command=command, cwd=str(self.cwd))
        terminal = {"terminalId": made["terminalId"]}
        self.ask("terminal/kill", **terminal)
        status = self.ask("terminal/wait_for_exit", **terminal)
        self.ask("terminal/release", **terminal)
        self.say(f"killed {status['exitCode']} {status['signal']}")

    def do_unknown(self, method: str) -> None:
        self.say(str(self.ask(method)["error"]["code"]))

    def do_wait(self, _: str) -> None:
        """Go on only when cancelled."""
        if "ignores-cancel" in self.traits:
            time.sleep(60)
        self.cancelled.wait()

    def do_die(self, words: str) -> None:
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def do_image(self, _: str) -> None:
        self.say("no picture")

    # Tool calls.

    def start(self, kind: str, title: str, given: Json, **more: Any) -> None:
        self.call = f"call-{uuid.uuid4().hex[:8]}"
        self.update(
            sessionUpdate="tool_call",
            toolCallId=self.call,
            title=title,
            kind=kind,
            status="pending",
            rawInput=given,
            **more,
        )

    def end(self, status: str = "completed", **more: Any) -> None:
        self.update(sessionUpdate="tool_call_update", toolCallId=self.call, status=status, **more)

    def may(self, kind: str, title: str, given: Json, **more: Any) -> bool:
        always = [("allow_always", "always-server"), ("allow_always", "always-tool")]
        always = always if "two-always" in self.traits else always[:1]
        options = [("allow_once", "once"), *always, ("reject_once", "no")]
        answer = self.ask(
            "session/request_permission",
            toolCall={"toolCallId": self.call, "title": title, "kind": kind, "rawInput": given, **more},
            options=[{"optionId": id, "kind": kind, "name": id} for kind, id in options],
        )
        outcome = answer.get("outcome", {})
        if outcome.get("outcome") == "cancelled":
            self.cancelled.set()
        return bool(outcome.get("optionId") == "once")


def main() -> None:
    folder, traits = (
        Path(sys.argv[1]),
        set(filter(None, sys.argv[2].split(","))) if len(sys.argv) > 2 else set(),
    )
    assert traits <= TRAITS.keys(), traits - TRAITS.keys()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    if "no-start" in traits:
        sys.exit("the licence has expired")
    if "stays" in traits:
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        with (folder / "pids").open("a") as pids:
            pids.write(f"{child.pid}\n")
    Agent(folder, traits).serve()
    if "stays" in traits:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)


if __name__ == "__main__":
    main()
