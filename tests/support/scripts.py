"""The script that the black boxes play with `scripted:`: turns that hang, crawl, break or just end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HALF_ANSWER = "Half a sentence"
"""What the prompt `hang` streams before nothing more comes."""

SLOW_ANSWER = "".join(f"word{number} " for number in range(40))
"""What the prompt `slow` streams, 10 ms for each word."""

BEFORE = "Before it "
"""What the prompt `break` streams before it fails."""

PIECE_MS = 10


def write_script(folder: Path) -> str:
    """Write the script into `folder` and return the model that plays it. Any other prompt gets `Answer.`"""
    path = folder / "script.json"
    path.write_text(json.dumps(_SCRIPT))
    return f"scripted:{path}"


def _reply(prompt: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"regex": prompt, "steps": list(steps)}


_FAULT = {"error": {"reason": "quota", "message": "No more words this month", "retryable": False}}
_SCRIPT = {
    "replies": [
        _reply("^hang$", {"text": HALF_ANSWER}, {"hang": True}),
        _reply("^slow$", {"text": SLOW_ANSWER, "delayMs": PIECE_MS}),
        _reply("^break$", {"text": BEFORE}, _FAULT),
        _reply("^break slowly$", {"text": SLOW_ANSWER, "delayMs": PIECE_MS}, _FAULT),
        _reply("", {"text": "Answer."}),
    ]
}
