"""Texts with questions to measure the index by: labelled ones from a folder of their own, and ours, made on the spot.

Ours come from this repository by rules, none by hand: the log of git (which commit has this subject?), a log that a
sidecar writes about a real session (which line says this?), the contract as JSON (which method does this?), the
settings' page (which key means this?), and our code (which function does this?).
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sidecar.model.index import SourceKind

ROOT = Path(__file__).parents[1]
MAX_QUESTIONS = 16
"""Of one text, spread over it: as many as the labelled ones have."""

HELD_OUT = frozenset(("gitlog-httpx", "loghub-BGL", "loghub-HDFS", "loghub-Linux", "loghub-Spark"))
"""Labelled texts that no weight was set on. Their misses were looked at, so they are not strictly blind."""


Call = tuple[str, dict[str, Any]]


class Text(msgspec.Struct, frozen=True):
    name: str
    text: str
    questions: list[tuple[str, str]]
    kind: SourceKind = "output"
    path: str | None = None


def labelled(folder: Path) -> list[Text]:
    found = []
    for file in sorted((folder / "outputs").glob("*.json.gz")):
        data = json.loads(gzip.decompress(file.read_bytes()))
        questions = [(one["question"], one["answer"]) for one in data["questions"]]
        found.append(Text(data["name"], data["text"], questions))
    return found


def ours() -> list[Text]:
    return [text for text in (_git_log(), _own_log(), _contract(), _settings(), _code()) if text.questions]


def ten_megabytes(texts: list[Text]) -> str:
    """The texts over and over, with other numbers each time, so that no two lines are alike by accident."""
    lines = [line for text in texts for line in text.text.split("\n")]
    made: list[str] = []
    size = turn = 0
    while size < 10_000_000:
        for line in lines:
            made.append(re.sub(r"\d+", lambda number, turn=turn: _other(number[0], turn), line))  # type: ignore[misc]
            size += len(made[-1]) + 1
        turn += 1
    return "\n".join(made)[:10_000_000]


def _other(number: str, turn: int) -> str:
    return str(int(number[:15]) * (turn * 7919 + 1) % 10 ** min(len(number), 15))


def _spread(questions: list[tuple[str, str]]) -> list[tuple[str, str]]:
    step = max(1, len(questions) // MAX_QUESTIONS)
    return questions[::step][:MAX_QUESTIONS]


def _git_log() -> Text:
    try:
        done = subprocess.run(
            ["git", "log", "--stat", "-400"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return Text("our git log", "", [])
    found = re.findall(r"(?m)^(commit [0-9a-f]{40})\n(?:.+\n)+\n    (.+)", done.stdout)
    asked = [(f"Which commit made this change: {subject}", commit) for commit, subject in found]
    return Text("our git log", done.stdout, _spread(asked))


def _own_log() -> Text:
    """What a sidecar logs at its most talkative while a client works with it; a question is what a line says but for
    its numbers, asked where few lines say so."""
    calls: list[Call] = [
        ("initialize", {"protocol": 1, "client": {"name": "benchmark", "version": "1"}}),
        *(call for at in range(6) for call in _talk(f"chat-{at}")),
        *((name, {}) for name in ("chat/list", "models/list", "providers/list", "doctor/run")),
        ("chat/delete", {"chatId": "chat-3"}),
    ]
    with tempfile.TemporaryDirectory() as folder:
        log = _logged(calls, folder).replace(folder, "/data")
    lines = log.split("\n")
    said = [_words(line) for line in lines]
    often = Counter(map(tuple, said))
    asked = [
        (" ".join(words), line[-60:])
        for words, line in zip(said, lines, strict=True)
        if len(words) >= 4 and often[tuple(words)] <= 2 and len(line) > 60
    ]
    return Text("our own log", log, _spread([(question[:200], answer) for question, answer in asked]))


def _talk(chat: str) -> list[Call]:
    prompt = [{"type": "text", "text": f"A round in {chat}"}]
    return [
        ("chat/open", {"chatId": chat}),
        ("prompt/send", {"chatId": chat, "content": prompt}),
        ("chat/history", {"chatId": chat}),
    ]


def _logged(calls: list[Call], folder: str) -> str:
    environ = {**os.environ, "SIDECAR_MODEL": "echo:", "HOME": folder, "XDG_CONFIG_HOME": folder}
    command = [sys.executable, "-m", "sidecar", "--data-dir", folder, "serve", "--log-level", "trace"]
    log = Path(folder) / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environ
        ) as sidecar,
    ):
        assert sidecar.stdin
        assert sidecar.stdout
        for at, (name, params) in enumerate(calls):
            frame = json.dumps({"jsonrpc": "2.0", "id": at, "method": name, "params": params})
            sidecar.stdin.write(frame + "\n")
            sidecar.stdin.flush()
            for line in sidecar.stdout:
                if json.loads(line).get("id") == at:
                    break
        sidecar.stdin.close()
    return log.read_text("utf-8")


def _words(line: str) -> list[str]:
    plain = line.partition('"message"')[2]
    return [word for word in re.findall(r"[A-Za-z]{3,}", plain) if word not in ("message", "sql")]


def _contract() -> Text:
    text = (ROOT / "protocol" / "openrpc.json").read_text("utf-8")
    methods = json.loads(text)["methods"]
    asked = [
        (one.get("summary") or one.get("description") or "", f'"name": "{one["name"]}"') for one in methods
    ]
    return Text(
        "our contract", text, _spread([pair for pair in asked if len(pair[0]) > 30]), "file", "openrpc.json"
    )


def _settings() -> Text:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| `([a-z_.]+)` \|.*\| ([^|]{30,}) \|$", text)
    return Text(
        "our settings", text, _spread([(doc, f"`{key}`") for key, doc in rows]), "file", "configuration.md"
    )


def _code() -> Text:
    text = (ROOT / "sidecar" / "store" / "turns.py").read_text("utf-8")
    asked = list(_documented(ast.parse(text)))
    return Text("our code", text, _spread(asked), "file", "turns.py")


def _documented(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = (ast.get_docstring(node) or "").split("\n")[0]
            if len(said) > 30:
                yield said, f"def {node.name}("
