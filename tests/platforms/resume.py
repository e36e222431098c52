"""Exports a chat to one agent and has it go on: `unshare -n python -m tests.platforms.resume NAME DIR`.

Prints what the model was sent last, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .agents import AGENTS, MODULES
from .sent import lines
from .sessions import KEPT, STEP_S, requests_of

JsonObject = dict[str, object]

TURN: JsonObject = {
    "id": "t-1",
    "promptId": "p-1",
    "status": "completed",
    "model": "fake",
    "engine": "native",
    "startedAt": 1714550400000,
    "endedAt": 1714550460000,
    "reason": "end_turn",
}


def main(name: str, folder: Path) -> None:
    home, project = folder / "home", folder / "my project"
    for needed in (project, home / ".codex"):
        needed.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (folder / "chat.jsonl").write_text(_chat())
    environment = {key: os.environ[key] for key in KEPT if key in os.environ}
    environment |= {"HOME": str(home), "TERM": "dumb", "SIDECAR_DATA_DIR": str(folder / "data")}
    sidecar = [sys.executable, "-m", "sidecar"]
    run = {"env": environment, "cwd": project, "check": True, "capture_output": True, "text": True}
    subprocess.run([*sidecar, "import", str(folder / "chat.jsonl"), "--chat", "heron"], **run)  # type: ignore[call-overload]
    answer = ["chat", "--chat", "heron", "--model", "echo:", "--project", ".", "hello"]
    subprocess.run([*sidecar, *answer], input="", **run)  # type: ignore[call-overload]
    exported = subprocess.run([*sidecar, "export-to", name, "heron"], **run)  # type: ignore[call-overload]
    session = exported.stderr.split()[-1]
    command = [*sidecar, "fake-provider", "--quiet", "--prefix", AGENTS[name].models]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as provider:
        try:
            assert provider.stdout is not None
            url = provider.stdout.readline().split()[0]
            AGENTS[name].settle(url, home, project)
            own = environment | AGENTS[name].environment(url, home)
            subprocess.run(
                _resume(name, session), env=own, cwd=project, stdin=subprocess.DEVNULL, timeout=STEP_S, check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            sys.stdout.write(json.dumps(lines(requests_of(url)[-1])))
        finally:
            provider.terminate()


def _resume(name: str, session: str) -> list[str]:
    prompt = "Go on [[say=Going on]]"
    if name == "claude-code":
        return [
            str(MODULES / "@anthropic-ai/claude-code-linux-x64/claude"),
            "--resume",
            session,
            "-p",
            prompt,
        ]
    (program,) = MODULES.glob("@openai/codex-linux-x64/vendor/*/bin/codex")
    chosen = ("-c", "model=fake", "-c", "model_provider=fake", "-c", "analytics.enabled=false")
    return [str(program), "exec", "resume", session, "--skip-git-repo-check", *chosen, prompt]


def _chat() -> str:
    """An export of ours, with a tool call."""
    common: JsonObject = {
        "turnId": "t-1",
        "status": "completed",
        "startedAt": 1714550400000,
        "endedAt": 1714550460000,
    }
    prompt: JsonObject = {"id": "i-1", "type": "user", "text": "The word is heron"}
    prompt["content"] = [{"type": "text", "text": "The word is heron"}]
    call: JsonObject = {
        "id": "i-2",
        "type": "tool",
        "name": "run_command",
        "input": {"command": "echo hello"},
    }
    call["output"] = {"text": "hello", "truncated": False}
    answer: JsonObject = {"id": "i-3", "type": "message", "text": "Noted: heron."}
    turn = TURN | {"items": [common | item for item in (prompt, call, answer)]}
    return json.dumps({"sidecar": "chat", "version": 1}) + "\n" + json.dumps({"turn": turn}) + "\n"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
