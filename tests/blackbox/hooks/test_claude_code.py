"""Hooks that were written for Claude Code, as people publish them, run unchanged."""

from __future__ import annotations

import json
from pathlib import Path

from tests.blackbox.hooks.bench import HookBench
from tests.blackbox.work.workbench import Json, call, outputs, statuses, tools
from tests.support.sidecar import Sidecar

VALIDATOR = '''#!/usr/bin/env python3
"""PreToolUse for Bash: point to better tools, and keep away from rm -rf."""
import json
import re
import sys

RULES = [
    (r"^grep\\b(?!.*\\|)", "Use 'rg' (ripgrep) instead of 'grep' for better performance"),
    (r"\\brm\\s+-[a-z]*r[a-z]*f", "rm -rf is not allowed in this repository"),
]

try:
    data = json.load(sys.stdin)
except json.JSONDecodeError as error:
    print(f"Error: Invalid JSON input: {error}", file=sys.stderr)
    sys.exit(1)
if data.get("tool_name", "") != "Bash":
    sys.exit(0)
command = data.get("tool_input", {}).get("command", "")
issues = [message for pattern, message in RULES if re.search(pattern, command)]
if issues:
    for issue in issues:
        print(f"• {issue}", file=sys.stderr)
    sys.exit(2)
'''

FORMATTER = '''#!/usr/bin/env python3
"""PostToolUse for Write and Edit: complain about Python files with tabs or long lines."""
import json
import os
import sys

data = json.load(sys.stdin)
path = data["tool_input"]["file_path"]
if not path.endswith(".py") or not os.path.isabs(path) or not data["tool_response"]["success"]:
    sys.exit(0)
wrong = [n for n, line in enumerate(open(path), 1) if "\\t" in line or len(line) > 80]
if wrong:
    reason = f"{os.path.basename(path)}: fix the formatting of lines {wrong}"
    print(json.dumps({"decision": "block", "reason": reason}))
'''

CONTEXT = """#!/bin/bash
# UserPromptSubmit: tell the branch; SessionStart: tell the README.
input=$(cat)
event=$(printf '%s' "$input" | sed -n 's/.*"hook_event_name": *"\\([A-Za-z]*\\)".*/\\1/p')
if [ "$event" = "UserPromptSubmit" ]; then
  echo "Branch: $(git -C "$CLAUDE_PROJECT_DIR" symbolic-ref --short HEAD)"
else
  printf '{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "Notes: %s"}}' \\
    "$(head -1 "$CLAUDE_PROJECT_DIR/notes.txt")"
fi
"""


def command(text: str, **more: int) -> list[Json]:
    return [{"type": "command", "command": text, **more}]


IN_PROJECT = '"$CLAUDE_PROJECT_DIR"/.claude/hooks'
SETTINGS: Json = {
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": command("$CLAUDE_PROJECT_DIR/.claude/hooks/validate.py", timeout=10)}
        ],
        "PostToolUse": [
            {"matcher": "Write|Edit|MultiEdit", "hooks": command(f"python3 {IN_PROJECT}/format.py")}
        ],
        "UserPromptSubmit": [{"hooks": command(f"{IN_PROJECT}/context.sh")}],
        "SessionStart": [{"matcher": "startup|resume", "hooks": command(f"{IN_PROJECT}/context.sh")}],
        "Notification": [{"hooks": command("notify-send hello")}],
    },
}


def install(folder: Path, *, settings: str = "settings.json") -> None:
    hooks = folder / ".claude" / "hooks"
    hooks.mkdir(parents=True)
    for name, text in (("validate.py", VALIDATOR), ("format.py", FORMATTER), ("context.sh", CONTEXT)):
        (hooks / name).write_text(text)
        (hooks / name).chmod(0o755)
    (folder / ".claude" / settings).write_text(json.dumps(SETTINGS))


def allow(bench: HookBench) -> None:
    config = bench.spawn.folder / "home/.config/sidecar/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[hooks]\nclaude_settings = true\n")


def notices(sidecar: Sidecar) -> list[str]:
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    return [item["text"] for turn in turns for item in turn["items"] if item["type"] == "notice"]


def test_a_projects_settings_of_claude_code_run_as_they_are(bench: HookBench) -> None:
    install(bench.project, settings="settings.local.json")
    allow(bench)
    bench.git("checkout", "-qb", "mill")
    calls = [
        call("run_command", command="grep -n first notes.txt"),
        call("run_command", command="cat notes.txt"),
        call("write_file", path="long.py", content=f"x = {'1' * 100}\n"),
        call("write_file", path="short.py", content="x = 1\n"),
    ]
    sidecar = bench.trusting([*calls, "done"])
    ended = sidecar.run("go", chatId="c")
    session = ended["sessionId"]

    assert statuses(sidecar, session) == ["denied", "completed", "completed", "completed"]
    denied, shown, long, short = outputs(sidecar, session)
    assert "Use 'rg' (ripgrep)" in denied
    assert shown.startswith("first")
    assert "long.py: fix the formatting of lines [1]" in long
    assert "fix the formatting" not in short
    assert notices(sidecar) == ["Notes: first", "Branch: mill"]
    assert sidecar.asked == []


def test_they_do_not_run_unless_the_user_allows_it(bench: HookBench) -> None:
    install(bench.project)
    install(bench.spawn.folder / "home")
    sidecar = bench.trusting([call("run_command", command="grep first notes.txt"), "done"])
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"]
    assert sidecar.call("hooks/list", chatId="c")["items"] == []


def test_the_users_settings_of_claude_code_hold_in_every_project(bench: HookBench) -> None:
    home = bench.spawn.folder / "home"
    bench.add(home / ".claude/settings.json", "PreToolUse", f"{home}/.claude/hooks/validate.py", "Bash")
    (home / ".claude/hooks").mkdir()
    (home / ".claude/hooks/validate.py").write_text(VALIDATOR)
    (home / ".claude/hooks/validate.py").chmod(0o755)
    allow(bench)
    sidecar = bench.start([call("run_command", command="rm -rf src"), "done"])
    ended = sidecar.run("go", chatId="c")

    (item,) = tools(sidecar, ended["sessionId"])
    assert (item["status"], item["notRun"]["code"]) == ("denied", "hook_denied")
    assert "rm -rf is not allowed" in item["notRun"]["message"]
    assert (bench.project / "src").exists()


def test_the_same_guard_copied_into_our_file_sees_every_way_to_run_a_command(bench: HookBench) -> None:
    guard = bench.spawn.folder / "validate.py"
    guard.write_text(VALIDATOR)
    bench.hook("PreToolUse", f"python3 {guard}", "Bash")
    batch = [{"label": "a", "command": "ls"}, {"label": "b", "command": "rm -rf src"}]
    sidecar = bench.trusting(
        [call("run_batch", commands=batch), call("run_code", language="shell", code="rm -rf src"), "done"]
    )
    ended = sidecar.run("go", chatId="c")

    offered = {tool["name"] for tool in sidecar.call("tools/list", chatId="c")["items"]}
    for item in tools(sidecar, ended["sessionId"]):
        assert item["status"] == ("denied" if item["name"] in offered else "failed"), item
    assert (bench.project / "src").exists()
