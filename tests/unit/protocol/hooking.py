"""The conversation in which hooks of a project are asked: they look at a prompt, deny a command, and are listed."""

from __future__ import annotations

import json

from .talk import Talk
from .transcripts import HOME, Json
from .working import PROJECT, tool


def hooks(talk: Talk) -> None:
    """The project's hooks wait for trust; then one speaks to the user, and one denies what the model would do."""
    guard = 'grep -q "rm " && echo "Ask before you remove anything." >&2 && exit 2; exit 0'
    greeting = json.dumps({"systemMessage": "The mill is closed today."})
    file: Json = {
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": guard}]}],
            "UserPromptSubmit": [{"hooks": [{"type": "command", "command": f"echo '{greeting}'"}]}],
            "Notification": [{"hooks": [{"type": "command", "command": "true"}]}],
        }
    }
    replies = [{"steps": [tool("run_command", command="rm mill.py"), {"text": "It stays."}]}]
    talk.start(
        f"scripted:{HOME}/script.json",
        files={
            "script.json": json.dumps({"replies": replies}),
            "engine/mill.py": "def add(a, b):\n    return a - b\n",
            "engine/.sidecar/hooks.json": json.dumps(file),
        },
    )
    talk.hello(capabilities={"permissions": True})
    talk.call("chat/open", chatId="tab-7", projectPath=PROJECT, config={"mode": "auto"})
    talk.call("hooks/list", chatId="tab-7")
    talk.call("project/trust", path=PROJECT, trusted=True)
    talk.run("Throw the mill away", chatId="tab-7", promptId="p-1")
    talk.call("hooks/list", chatId="tab-7")
