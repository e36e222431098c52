"""Has one agent write a session: `unshare -n python -m tests.platforms.sessions NAME DIR`, in a network of its own.

The model is the fake provider: it calls the agent's own tools, which change files, fail and read an image. Then the
session is resumed, compacted where the agent does that without a terminal, and killed in the middle of a command.
`DIR/requests.json` has what the model was sent, `DIR/home` what the agent has stored.
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

import msgspec

from tests.support.pictures import png

from .agents import AGENTS, MODULES, NODE

STEP_S = 120
KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV")
FLUSH_S = 2
"""After the command has started: agents write what they know a moment later."""

NEXT = "[[next]]"

FULL = "[[usage=190000,10]]"
"""What makes an agent believe that the window of its model is full, so that it compacts."""

TEXT = "one\ntwo\nthree\n"
SLEEP = "python3 -c 'import time; time.sleep(300)'"

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** End Patch\n"


class Step(msgspec.Struct, frozen=True):
    """One run of the agent. `killed`: it is killed once the model has answered `Long one`."""

    arguments: tuple[str, ...]
    prompt: str = ""
    killed: bool = False


def tool(name: str, **given: object) -> str:
    return f"[[tool={name}:{json.dumps(given)}]]"


def work(*calls: str) -> str:
    """A prompt that has the model make these calls one after the other."""
    return "Please work on it. [[think=Let me see]]" + NEXT.join([*calls, "[[say=All done here]]"])


def _claude(project: Path) -> tuple[list[str], list[Step]]:
    file = str(project / "a.txt")
    first = work(
        tool("Write", file_path=file, content=TEXT),
        tool("Edit", file_path=file, old_string="two", new_string="2"),
        tool("Bash", command="echo hello; ls", description="List")
        + tool("Read", file_path=str(project / "red.png")),
        tool("Bash", command="exit 3", description="Fail"),
    )
    task = tool("Task", description="Sub", prompt="Look [[say=Seen]]", subagent_type="general-purpose")
    options = ("--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
    base = [str(MODULES / "@anthropic-ai/claude-code-linux-x64/claude"), *options]
    return base, [
        Step(("-p", first)),
        Step(("-c", "-p", "And a second question [[say=Second answer]]")),
        Step(("-c", "-p", "/compact")),
        Step(("-c", "-p", f"After it {task}{NEXT}[[say=After compaction]]")),
        Step(("-c", "-p", f"Long one {tool('Bash', command=SLEEP, description='Wait')}"), killed=True),
        Step(("-c", "--fork-session", "-p", "Forked [[say=Fork answer]]")),
    ]


def _codex(project: Path) -> tuple[list[str], list[Step]]:
    first = work(
        tool("exec_command", cmd="printf 'one\\ntwo\\nthree\\n' > a.txt; echo hello"),
        tool("exec_command", cmd=f"apply_patch <<'EOF'\n{PATCH}EOF"),
        tool("view_image", path=str(project / "red.png")) + tool("nothing", a=1),
        tool("exec_command", cmd="exit 3"),
    )
    settings = ("model=fake", "model_provider=fake", "analytics.enabled=false")
    options = [word for setting in settings for word in ("-c", setting)]
    (program,) = MODULES.glob("@openai/codex-linux-x64/vendor/*/bin/codex")
    free = ("--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox", *options)
    resumed = ("resume", "--last", *free)
    small = ("-c", "model_auto_compact_token_limit=50")
    return [str(program), "exec"], [
        Step((*free, "-i", str(project / "red.png"), "--", first)),
        Step((*resumed, "And a second question [[say=Second answer]]")),
        Step((*resumed, *small, "After it [[say=After compaction]]")),
        Step((*resumed, f"Long one {tool('exec_command', cmd=SLEEP)}"), killed=True),
    ]


def _gemini(project: Path) -> tuple[list[str], list[Step]]:
    file = str(project / "a.txt")
    first = work(
        tool("write_file", file_path=file, content=TEXT),
        tool("replace", file_path=file, instruction="Change it", old_string="two", new_string="2"),
        tool("run_shell_command", command="echo hello; ls"),
        tool("run_shell_command", command="exit 3"),
    )
    base = [NODE, str(MODULES / "@google/gemini-cli/bundle/gemini.js"), "--output-format", "json", "--yolo"]
    # It sends the calls of a session that it resumes twice, which no API takes: only one without calls is resumed.
    # When it compacts, it sends two answers of the model in a row, which the fake provider refuses.
    return base, [
        Step(("-p", first)),
        Step(("-p", "And a second @red.png question [[say=Second answer]]")),
        Step(("--resume", "latest", "-p", "And a third question [[say=Third answer]]")),
        Step(("-p", f"Long one {tool('run_shell_command', command=SLEEP)}"), killed=True),
    ]


def _opencode(project: Path) -> tuple[list[str], list[Step]]:
    file = str(project / "a.txt")
    first = work(
        tool("write", filePath=file, content=TEXT),
        tool("edit", filePath=file, oldString="two", newString="2"),
        tool("bash", command="echo hello; ls", description="List"),
        tool("bash", command="exit 3", description="Fail"),
    )
    base = [str(MODULES / "opencode-linux-x64/bin/opencode"), "run", "--format", "json"]
    return base, [
        Step((), first),
        Step(
            ("-c", "-f", str(project / "red.png"), "-f", str(project / "plan.md")),
            "And a second question [[say=Second answer]]",
        ),
        Step((), f"After it {FULL}[[say=After compaction]]"),
        Step(("-c",), "And a third question [[say=Third answer]]"),
        Step(("-c",), f"Long one {tool('bash', command=SLEEP, description='Wait')}", killed=True),
    ]


def _copilot(project: Path) -> tuple[list[str], list[Step]]:
    file = str(project / "a.txt")
    first = work(
        tool("create", path=file, file_text=TEXT),
        tool("edit", path=file, old_str="two", new_str="2"),
        tool("bash", command="echo hello; ls", description="List")
        + tool("view", path=str(project / "red.png")),
        tool("bash", command="exit 3", description="Fail"),
    )
    options = ("--no-auto-update", "--disable-builtin-mcps", "--allow-all-tools", "--allow-all-paths")
    base = [str(MODULES / "@github/copilot-linux-x64/copilot"), *options]
    return base, [
        Step(("-p", first)),
        Step(("--continue", "-p", "And a second question [[say=Second answer]]")),
        Step(("--continue", "-p", "/compact")),
        Step(
            ("--continue", "-p", f"Long one {tool('bash', command=SLEEP, description='Wait')}"), killed=True
        ),
    ]


def _qwen(project: Path) -> tuple[list[str], list[Step]]:
    file = str(project / "a.txt")

    def run(command: str) -> str:
        return tool("run_shell_command", command=command, is_background=False, description="Run")

    first = work(
        tool("write_file", file_path=file, content=TEXT),
        tool("edit", file_path=file, old_string="two", new_string="2"),
        run("echo hello; ls") + tool("read_file", file_path=str(project / "red.png")),
        run("exit 3"),
    )
    base = [NODE, str(MODULES / "@qwen-code/qwen-code/cli.js"), "--output-format", "json", "--yolo"]
    return base, [
        Step(("-p", first)),
        Step(("--continue", "-p", "And a second question [[say=Second answer]]")),
        Step(("--continue", "-p", "/compress")),
        Step(("--continue", "-p", f"Long one {run(SLEEP)}"), killed=True),
    ]


SESSIONS: dict[str, Callable[[Path], tuple[list[str], list[Step]]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "opencode": _opencode,
    "copilot": _copilot,
    "qwen-code": _qwen,
}

PLACES = {
    "claude-code": "home/.claude/projects",
    "codex": "home/.codex/sessions",
    "gemini-cli": "home/.gemini/tmp",
    "opencode": "home/.local/share/opencode",
    "copilot": "home/.copilot/session-state",
    "qwen-code": "home/.qwen/projects",
}
"""Where each agent keeps its sessions, below the folder of `main`."""


def main(name: str, folder: Path) -> None:
    home, project = folder / "home", folder / "my project"
    for needed in (project, home / ".gemini", home / ".qwen", home / ".codex"):
        needed.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (project / "red.png").write_bytes(png())
    (project / "plan.md").write_text("# The plan\n\nTwelve feet wide.\n")
    for settings in (home / ".gemini/settings.json", home / ".qwen/settings.json"):
        settings.write_text('{"mcpServers": {"sidecar": {}}}')
    environment = {key: os.environ[key] for key in KEPT if key in os.environ}
    environment |= {"HOME": str(home), "TERM": "dumb"}
    command = [sys.executable, "-m", "sidecar", "fake-provider", "--quiet", "--prefix", AGENTS[name].models]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as provider:
        try:
            assert provider.stdout is not None
            url = provider.stdout.readline().split()[0]
            AGENTS[name].settle(url, home, project)
            for settings in (home / ".gemini/settings.json", home / ".qwen/settings.json"):
                value = json.loads(settings.read_text())
                settings.write_text(json.dumps({key: value[key] for key in value if key != "mcpServers"}))
            base, steps = SESSIONS[name](project)
            for step in steps:
                _run(base, step, environment | AGENTS[name].environment(url, home), project, url)
            (folder / "requests.json").write_text(json.dumps(requests_of(url)))
        finally:
            provider.terminate()


def _run(base: list[str], step: Step, environment: dict[str, str], project: Path, url: str) -> None:
    with subprocess.Popen(
        [*base, *step.arguments],
        env=environment,
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as agent:
        assert agent.stdin is not None
        agent.stdin.write(step.prompt.encode())
        agent.stdin.close()
        if step.killed:
            command = _wait_for_command(project)
            os.killpg(agent.pid, signal.SIGKILL)
            os.kill(command, signal.SIGKILL)
        agent.wait(STEP_S)


def _wait_for_command(project: Path) -> int:
    """Wait until the command of the last step runs, and return its id: the agent has stored the call by then."""
    until = time.monotonic() + STEP_S
    while time.monotonic() < until:
        running = [process for process in Path("/proc").glob("[0-9]*") if _is_command(process, project)]
        if running:
            time.sleep(FLUSH_S)
            return int(running[0].name)
        time.sleep(0.1)
    raise AssertionError("the agent runs no command")


def _is_command(process: Path, project: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        is_python = words[0].endswith(b"python3") and words[1:2] == [b"-c"]
        return is_python and (process / "cwd").resolve() == project
    except OSError:
        return False


def requests_of(url: str) -> list[dict[str, Any]]:
    """What the fake provider was asked."""
    with urllib.request.urlopen(f"{url}/_fake/requests", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
