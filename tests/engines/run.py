"""Plays the parts of an engine with one real agent: `python -m tests.engines.run NAME FOLDER`.

Prints one JSON object: for each part whether it passed, and what was seen instead. Only loopback is reached; the test
gives it a network of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import processes
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .agents import AGENTS, RealAgent

TURN_S = 90.0

Json = dict[str, Any]


class Play:
    """One agent, one chat, one model. Each part is a method named `part_…`, played in order."""

    def __init__(self, agent: RealAgent, folder: Path) -> None:
        self.agent = agent
        self.spawn = Spawner(folder)
        self.home = folder / "home"
        self.home.mkdir()
        self.project = folder / "my project"
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.provider = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "fake-provider", "--prefix", agent.models],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.provider.stdout is not None
        self.url = self.provider.stdout.readline().split()[0]
        agent.settle(self.url, self.home, self.project)
        self._write_settings()
        self.decision = "allow_once"
        self.asked: list[Json] = []
        self.sidecar = self.start()

    def _write_settings(self) -> None:
        folder = self.home / ".config/sidecar"
        folder.mkdir(parents=True, exist_ok=True)
        name = self.agent.engine.rpartition(":")[2]
        program, *arguments = self.agent.command
        lines = [f"[engines.{name}]", f"command = {json.dumps(program)}", "start_timeout = 90"]
        lines += [f"args = {json.dumps(arguments)}"] if arguments else []
        lines += [f"login = {json.dumps(self.agent.login)}"] if self.agent.login else []
        lines += [f"[engines.{name}.env]"]
        lines += [f"{k} = {json.dumps(v)}" for k, v in self.agent.variables(self.url, self.home).items()]
        (folder / "config.toml").write_text("\n".join(lines) + "\n")

    def start(self) -> Sidecar:
        sidecar = self.spawn(capabilities={"permissions": True, "input": True})
        sidecar.answering["permission/request"] = self._answer
        sidecar.call(
            "chat/open", chatId="c", projectPath=str(self.project), config={"engine": self.agent.engine}
        )
        return sidecar

    def _answer(self, params: Json) -> Json:
        self.asked.append(params)
        return {"decision": self.decision}

    def run(self, text: str) -> Json:
        sent = self.sidecar.say(text, chatId="c")
        ended: Json = self.sidecar.wait_turn(sent["sessionId"], sent["turnId"], TURN_S)["data"]
        return ended

    def said(self) -> str:
        turn = self.sidecar.call("chat/history", chatId="c")["turns"][-1]
        return "".join(item["text"] for item in turn["items"] if item["type"] == "message")

    def shell(self, command: str) -> str:
        return f"[[tool={self.agent.shell}:{json.dumps(self.agent.input(command))}]][[next]][[say=Done]]"

    def last_request(self) -> str:
        with urllib.request.urlopen(f"{self.url}/_fake/requests", timeout=10) as answer:
            found: list[Any] = json.load(answer)
        # Some agents ask for a title afterwards.
        return max((json.dumps(one) for one in found[-2:]), key=len)

    def descendants(self) -> set[int]:
        return processes.pids_with_variable("HOME", str(self.home)) - {self.sidecar.pid}

    # The parts.

    def part_prompt(self) -> str | None:
        ended = self.run("[[say=The loom stands in the hall]]")
        return _lacks("The loom stands in the hall", self.said()) or _ended(ended)

    def part_tool_allowed(self) -> str | None:
        self.decision = "allow_once"
        ended = self.run(self.shell("echo made > allowed.txt"))
        if not (self.project / "allowed.txt").exists():
            return f"the command did not run; asked {[one['subject'] for one in self.asked]}; {ended.get('error')}"
        if not self.asked:
            return "it was not asked for"
        patches = self.sidecar.call("patches/list", chatId="c")["items"]
        return _differs(["allowed.txt"], [patch["filePath"] for patch in patches])

    def part_tool_denied(self) -> str | None:
        self.decision = "deny_once"
        asked = len(self.asked)
        self.run(self.shell("echo made > denied.txt"))
        self.decision = "allow_once"
        if (self.project / "denied.txt").exists():
            return "the command ran"
        return None if len(self.asked) > asked else "it was not asked for"

    def part_cancel(self) -> str | None:
        sent = self.sidecar.say("[[delay=3000]][[say=one two three four five six seven eight]]", chatId="c")
        time.sleep(2)
        began = time.monotonic()
        self.sidecar.call("turn/cancel", chatId="c")
        ended = self.sidecar.wait_turn(sent["sessionId"], sent["turnId"], TURN_S)["data"]
        took = time.monotonic() - began
        after = self.run("[[say=After the cancel]]")
        return (
            _differs("cancelled", ended["reason"])
            or (f"the cancel took {took:.1f} s" if took > 2 else None)
            or _ended(after)
            or _lacks("After the cancel", self.said())
        )

    def part_kill_agent(self) -> str | None:
        victims = self.descendants()
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        ended = self.run("[[say=Again]]")
        if ended["reason"] != "end_turn":  # the death was found only by this prompt
            ended = self.run("[[say=Again]]")
        return (None if victims else "no agent was found") or _ended(ended) or self._remembers()

    def part_kill_sidecar(self) -> str | None:
        self.sidecar.kill()
        gone = processes.poll_until(lambda: not self.descendants(), 3.0)
        self.sidecar = self.start()
        ended = self.run("[[say=Resumed]]")
        return (
            (None if gone else f"{len(self.descendants())} processes were left")
            or _ended(ended)
            or _lacks("Resumed", self.said())
            or self._remembers()
        )

    def part_switch(self) -> str | None:
        self.sidecar.call("chat/configure", chatId="c", set={"engine": "native", "model": "echo:"})
        self.run("The shuttle is made of boxwood")
        self.sidecar.call("chat/configure", chatId="c", set={"engine": self.agent.engine})
        ended = self.run("[[say=Back]]")
        sent = self.last_request()
        missing = [word for word in ("boxwood", "loom stands") if word not in sent]
        return _ended(ended) or (f"the model was not sent {missing}" if missing else None)

    def _remembers(self) -> str | None:
        return None if "loom stands" in self.last_request() else "the model was sent an empty thread"

    def close(self) -> None:
        self.sidecar.close_stdin()
        self.sidecar.wait()
        self.provider.terminate()


def _differs(wanted: object, found: object) -> str | None:
    return None if wanted == found else f"{found!r} instead of {wanted!r}"


def _lacks(wanted: str, said: str) -> str | None:
    """Some agents say more than the model does, such as a warning about it."""
    return None if said.endswith(wanted) else f"{said!r} instead of {wanted!r}"


def _ended(ended: Json) -> str | None:
    if ended["reason"] == "end_turn":
        return None
    return f"{ended['reason']}: {(ended.get('error') or {}).get('message')}"


def main(name: str, folder: Path) -> None:
    if os.environ.get("SIDECAR_OWN_NETWORK"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    play = Play(AGENTS[name], folder)
    results: Json = {"version": play.agent.version}
    parts: dict[str, Callable[[], str | None]] = {
        part.removeprefix("part_"): getattr(play, part) for part in vars(Play) if part.startswith("part_")
    }
    for part, function in parts.items():
        try:
            results[part] = function()
        except Exception as error:
            results[part] = f"{type(error).__name__}: {error}"[:500]
    play.close()
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
