"""The tools that agents get, as `tools/list` describes them: short, because every session of an agent pays for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .messages import ListedTool, Schema

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_INTEGER: Schema = {"type": "integer"}

ToolEffect = Literal["reads", "runs", "adds", "deletes"]

_ANNOTATIONS: dict[ToolEffect, dict[str, bool]] = {
    "reads": {"readOnlyHint": True},
    "adds": {"destructiveHint": False},
    "runs": {"openWorldHint": True},
    "deletes": {"destructiveHint": True},
}


class AgentTool(msgspec.Struct, frozen=True):
    """A tool of the MCP server. `own`: it is one of the model's own tools, and is run like a call of a model."""

    name: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    effect: ToolEffect = "reads"
    own: bool = False

    @property
    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = list(self.required)
        return schema

    def describe(self) -> ListedTool:
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema,
            "annotations": _ANNOTATIONS[self.effect],
        }


def _choice(*names: str) -> Schema:
    return {"type": "string", "enum": list(names)}


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


_TABLE = (
    AgentTool(
        "search_context",
        'Search kept outputs, indexed files and pages of this project by words (also "a phrase", OR, -not, prefix*).',
        {
            "queries": _TEXTS,
            "source": _described(_TEXT, "Only this out:… id or exact name."),
            "scope": _described(_choice("project", "chat"), "chat: only this session. Default project."),
            "limit": _described(_INTEGER, "Hits per query, default 5."),
            "max_tokens": _described(_INTEGER, "Default 1200."),
        },
        ("queries",),
        own=True,
    ),
    AgentTool(
        "get_output",
        "Show the text behind an out:… reference; ask for lines of a long one.",
        {"id": _TEXT, "start_line": _INTEGER, "end_line": _INTEGER},
        ("id",),
        own=True,
    ),
    AgentTool(
        "index_path",
        "Index a file or folder of the project for search_context, without reading it here.",
        {"path": _TEXT},
        ("path",),
        "adds",
        own=True,
    ),
    AgentTool(
        "fetch_url",
        "Read a web page as Markdown. A long one is kept and previewed; `query` returns matching passages.",
        {
            "url": _TEXT,
            "query": _TEXT,
            "select": _described(_TEXT, "Part of a JSON answer: items[0].name."),
            "refresh": {"type": "boolean"},
        },
        ("url",),
        "runs",
        own=True,
    ),
    AgentTool(
        "run_code",
        "Run code in the project's folder, sandboxed, and print only what matters. Long output is kept and answered by"
        " intent or queries.",
        {
            "language": _described(
                _TEXT, "python, javascript, shell, ruby, go, rust, perl and others if installed."
            ),
            "code": _TEXT,
            "intent": _described(_TEXT, "What to find in a long output."),
            "queries": _TEXTS,
            "timeout_ms": _INTEGER,
        },
        ("language", "code"),
        "runs",
        own=True,
    ),
    AgentTool(
        "run_batch",
        "Run shell commands side by side, sandboxed. Each output is kept under its label; queries search them all.",
        {
            "commands": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"label": _TEXT, "command": _TEXT},
                    "required": ["label", "command"],
                },
            },
            "queries": _TEXTS,
            "concurrency": _INTEGER,
            "timeout_ms": _INTEGER,
        },
        ("commands",),
        "runs",
        own=True,
    ),
    AgentTool("open_files", "List the files that are open in Sidecar's chats of this project.", {}),
    AgentTool(
        "patches",
        "List recorded changes to files of this project, newest first; with id or path show diffs.",
        {"id": _TEXT, "path": _TEXT, "limit": _INTEGER},
    ),
    AgentTool(
        "search_chats",
        "Search what was said in earlier chats and agent sessions.",
        {
            "query": _TEXT,
            "scope": _described(_choice("project", "all"), "Default project."),
            "limit": _INTEGER,
        },
        ("query",),
    ),
    AgentTool(
        "stats",
        "Tokens kept out of the context window, searches, runs and costs.",
        {"scope": _described(_choice("chat", "project", "all"), "Default project.")},
    ),
    AgentTool("doctor", "Check the installation: storage, sandbox, index, models.", {}),
    AgentTool(
        "purge",
        "Delete kept data for good. Without confirm it only counts.",
        {"scope": _choice("chat", "project", "all"), "confirm": {"type": "boolean"}},
        ("scope",),
        "deletes",
    ),
)

TOOLS: dict[str, AgentTool] = {tool.name: tool for tool in _TABLE}
"""In the order of `tools/list`, which is fixed."""

SANDBOX_TOOLS = ("run_code", "run_batch")
"""Those that run programs of the agent."""
