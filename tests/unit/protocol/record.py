"""`python -m tests.unit.protocol.record [NAME…]`: play the conversations and write the transcripts."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.sidecar import FIRST_ID
from tests.support.spawner import Spawner

from .conversations import CONVERSATIONS
from .talk import Talk
from .transcripts import FOLDER, HOME, ID, IDS, SOURCE, TIME, Json, placeholder, spellings

MACHINES_OWN = {"uptimeMs": 1500, "databaseBytes": 102400}
"""What stands in a transcript for figures that are another's on another machine."""

LANGUAGES = ["python", "javascript", "shell"]
"""And for the languages that one has installed."""


def record(name: str, conversation: Callable[[Talk], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spawner = Spawner(Path(folder).resolve())
        try:
            talk = Talk(spawner)
            conversation(talk)
            talk.stop()
        finally:
            spawner.settle()
        lines = [json.dumps(_trimmed(line), ensure_ascii=False) for line in talk.lines]
    text = _normalised("\n".join(lines) + "\n", str(spawner.folder))
    (FOLDER / f"{name}.jsonl").write_text(text, "utf-8")


def _trimmed(line: Json) -> Json:
    """Without what is long and stands elsewhere in full, and without figures of this machine."""
    result = line.get("message", {}).get("result")
    if isinstance(result, dict):
        if "openrpc" in result:
            cut = {name: type(value)() for name, value in result.items() if isinstance(value, list | dict)}
            result.update(cut | {"info": result["info"]})
        if "values" in result and result.get("version", "absent") != "absent":
            result["version"] = "5f2b90c1d4e7a386"
        for tool in filter(lambda item: isinstance(item, dict), _listed(result)):
            languages = tool.get("inputSchema", {}).get("properties", {}).get("language", {})
            languages.update({"enum": LANGUAGES} if "enum" in languages else {})
        if "bytes" in result and isinstance(result.get("files"), list):
            result["bytes"] = 1200
        result.update({name: value for name, value in MACHINES_OWN.items() if name in result})
    return line


def _normalised(text: str, folder: str) -> str:
    for spelling in spellings(folder):
        text = text.replace(json.dumps(spelling)[1:-1], HOME)
    text = re.sub(
        rf'"id": ({FIRST_ID // 1000}\d{{3}})\b', lambda id: f'"id": {int(id[1]) - FIRST_ID + 1}', text
    )
    epochs = re.findall(r'\\?"epoch\\?": ?\\?"([0-9a-f]{12})\\?"', text)
    instances = re.findall(r'"instanceId": ?"([0-9a-f]{16})"', text)
    found = [("e", value) for value in epochs] + [("f", value) for value in instances]
    found += [(id[1], id[0]) for id in ID.finditer(text)]
    found += [("o", id) for id in SOURCE.findall(text)]
    counts = dict.fromkeys((*IDS, "e", "f", "o"), 0)
    for kind, value in dict.fromkeys(found):
        counts[kind] += 1
        text = text.replace(value, placeholder(kind, counts[kind]))
    text = re.sub(r"\d+ MiB free", "80000 MiB free", text)
    text = re.sub(r'"/[^"]*/(git|rg)"', r'"/usr/bin/\1"', text)
    return re.sub(r"\b1[78]\d{11}\b", str(TIME), text)


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, conversation in CONVERSATIONS.items():
        if not names or name in names:
            record(name, conversation)


def _listed(result: dict[str, Any]) -> list[Any]:
    """What a result lists; the `items` of an import are a number."""
    items = result.get("items")
    return items if isinstance(items, list) else []


if __name__ == "__main__":
    main(sys.argv[1:])
