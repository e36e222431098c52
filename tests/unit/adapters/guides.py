"""Writes the guide of each coding agent, and the tables of docs/agents.md, from the table of adapters:
`python -m tests.unit.adapters.guides`. What is said in sentences is in the adapters themselves.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from sidecar.adapters import connections
from sidecar.adapters.base import Adapter, HookFile, ServerFile
from sidecar.adapters.registry import ADAPTERS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "agents.md"
FOLDER = DOCS / "agents"

BEGIN = "<!-- agents: written by `python -m tests.unit.adapters.guides` -->\n"
END = "<!-- end of agents -->\n"

WIDTH = 100

TOOL_NAMES = {
    "claude-code": "mcp__sidecar__run_code",
    "codex": "mcp__sidecar__run_code",
    "gemini-cli": "mcp_sidecar_run_code",
    "opencode": "sidecar_run_code",
    "copilot": "sidecar-run_code",
    "qwen-code": "mcp__sidecar__run_code",
}
"""The name of `run_code` in requests to the model, where they were read."""


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, adapter in ADAPTERS.items():
        (FOLDER / f"{name}.md").write_text(guide(adapter), "utf-8")
    PAGE.write_text(update_tables(PAGE.read_text("utf-8")), "utf-8")


def update_tables(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + tables() + END + rest.partition(END)[2]


def tables() -> str:
    """Where `connect` writes, and what each agent can do."""
    files = ["| guide | for all projects | in a project | checked with |", "|---|---|---|---|"]
    able = [
        "| agent | routing before a tool | capture | text at start | after a compaction | one chat a session |",
        "|---|---|---|---|---|---|",
    ]
    for name, adapter in ADAPTERS.items():
        servers = adapter.servers
        user, project = (_shown(servers, "user"), _shown(servers, "project")) if servers else ("", "")
        files.append(f"| [{name}](agents/{name}.md) | {user} | {project} | {adapter.checked} |")
        able.append(f"| {name} | {' | '.join(_abilities(adapter))} |")
    return "\n" + "\n".join(files) + "\n\n" + "\n".join(able) + "\n\n"


def guide(adapter: Adapter) -> str:
    parts = [
        f"# Sidecar in {adapter.title}",
        _fill(_introduction(adapter)),
        *_connect(adapter),
        *_works(adapter),
        *_cannot(adapter),
        *(("## Good to know", _list(adapter.notes)) if adapter.notes else ()),
        *_remove(adapter),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(adapter: Adapter) -> str:
    checked = (
        f"Checked by running it with {adapter.title} {adapter.checked}."
        if adapter.is_run
        else f"Written from the {adapter.checked}; we have not run it."
    )
    return (
        f"{adapter.title} gets Sidecar's [tools](../agents.md#tools): output that stays out of the context and is"
        f" found again, code in a sandbox, and search over sessions of all your agents. {checked}"
    )


def _connect(adapter: Adapter) -> list[str]:
    servers, hooks, name = adapter.servers, adapter.hooks, adapter.name
    assert servers is not None
    lines = [
        f"sidecar connect {name} --dry-run    # show the change, write nothing",
        f"sidecar connect {name}",
    ]
    if servers.project:
        lines.append(f"sidecar connect {name} --project    # for this folder only")
    entry = connections.plan_server(servers, ["/path/to/sidecar", "mcp"], "", None).after or ""
    written = [f"The server, in {_places(servers)}:"]
    moved = servers.moved
    found = [
        "## Connect",
        _code("sh", "\n".join(lines)),
        f"Then start {adapter.title} again. What is written:",
        _list(written),
        textwrap.indent(_code("toml" if servers.syntax == "toml" else "json", entry.strip()), "  "),
    ]
    rest = []
    if hooks is not None:
        rest.append(
            f"{_kind(hooks)}, in {_places(hooks)}. `--no-hooks` leaves {'it' if hooks.script else 'them'} out."
        )
    if not (hooks and hooks.format.context_events) and (adapter.user_instructions or adapter.instructions):
        user = f"`~/{adapter.user_instructions}`" if adapter.user_instructions else ""
        in_project = adapter.instructions and servers.project
        project = f"`{adapter.instructions}` with `--project`" if in_project else ""
        block = " or ".join(filter(None, (user, project)))
        rest.append(
            f"A block of instructions between markers, in {block}. `--no-instructions` leaves it out."
        )
    if moved:
        rest.append(f"If `{moved[0]}` is set, the files for all projects are in that folder.")
    return [*found, _list(rest)] if rest else found


def _kind(hooks: HookFile) -> str:
    return "A script that runs our hook" if hooks.script else "Hooks that run `sidecar hook`"


def _works(adapter: Adapter) -> list[str]:
    found = ["All tools, resources and prompts of the [MCP server](../agents.md)."]
    if adapter.name in TOOL_NAMES:
        found[0] += f" Its model sees `run_code` as `{TOOL_NAMES[adapter.name]}`."
    if adapter.hooks is not None:
        found += _hooks_work(adapter.hooks)
    if adapter.session_variable or adapter.session_meta:
        found.append("Calls of the tools and events of the hooks are in one chat per session.")
    elif adapter.hooks is None:
        found.append("Calls of the tools are in one chat per project.")
    found.append("What other agents stored in the project is found from here, and the other way round.")
    return ["## What works", _list(found)]


def _hooks_work(hooks: HookFile) -> list[str]:
    events = hooks.format.events
    context = {events[event] for event in hooks.format.context_events}

    def name(kind: str) -> str:
        event = next((event for event, of in events.items() if of == kind), "")
        return "" if hooks.script or not event else f" (`{event}`)"

    texts = {
        "before_tool": "A call that would flood the context is denied once: the model is pointed to Sidecar's tools",
        "after_tool": "Each tool call and its output are stored; outputs over 2,048 characters can be searched",
        "prompt": "Your prompts are stored",
        "answer": "The model's answers are stored",
    }
    kinds = set(events.values())
    found = [f"{text}{name(kind)}." for kind, text in texts.items() if kind in kinds]
    if context & {"session_start", "prompt"}:
        begins = (
            f"A new session{name('session_start')}"
            if "session_start" in context
            else f"The first prompt{name('prompt')}"
        )
        found.append(f"{begins} brings the last sessions in the project and what was asked in them.")
    if "before_compaction" in kinds:
        back = ", and what stands open is given back after it" if _gives_back(hooks) else ""
        found.append(f"Before a compaction the session is noted down{name('before_compaction')}{back}.")
    return found


def _gives_back(hooks: HookFile) -> bool:
    """Whether the model of a compacted session gets text: at a start, or with the next prompt."""
    context = {hooks.format.events[event] for event in hooks.format.context_events}
    return not context.isdisjoint({"prompt", "before_compaction"})


def _cannot(adapter: Adapter) -> list[str]:
    found = list(adapter.cannot)
    if adapter.servers and adapter.servers.project is None and "project" not in " ".join(adapter.cannot):
        found.append("It has no file of MCP servers for one project alone.")
    nothing = f"Nothing of what Sidecar offers agents is missing in {adapter.title}."
    return ["## What does not work", _list(found) if found else nothing]


def _remove(adapter: Adapter) -> list[str]:
    lines = [f"sidecar connect {adapter.name} --remove"]
    if adapter.servers and adapter.servers.project:
        lines.append(f"sidecar connect {adapter.name} --project --remove")
    text = (
        "A file that nobody edited since is restored byte by byte, one that `connect` created is removed; of any"
        " other only our entries are taken out. `sidecar doctor` says what is wrong with a connection."
    )
    return ["## Remove", _code("sh", "\n".join(lines)), _fill(text)]


def _abilities(adapter: Adapter) -> list[str]:
    hooks = adapter.hooks
    events = hooks.format.events if hooks else {}
    kinds = set(events.values())
    context = {events[event] for event in hooks.format.context_events} if hooks else set()
    start = "yes" if "session_start" in context else "at the first prompt" if "prompt" in context else "no"
    noted = hooks is not None and "before_compaction" in kinds and _gives_back(hooks)
    by_hand = hooks is not None and any(hooks.format.is_noise(event, b"") for event in events)
    compaction = ("of one by hand" if by_hand else "yes") if noted else "no"
    has_session = bool(adapter.session_variable or adapter.session_meta)
    return [
        "yes" if "before_tool" in kinds else "no",
        "yes" if "after_tool" in kinds else "no",
        start,
        compaction,
        "yes" if has_session else "of hooks" if hooks else "no",
    ]


def _places(file: ServerFile | HookFile) -> str:
    return " or ".join(filter(None, (_shown(file, "user"), _shown(file, "project"))))


def _shown(file: ServerFile | HookFile, scope: str) -> str:
    place = file.user if scope == "user" else file.project
    return f"`{'~/' if scope == 'user' else ''}{place}`" if place else ""


def _list(sentences: list[str] | tuple[str, ...]) -> str:
    return "\n".join(_fill(f"- {sentence}", "  ") for sentence in sentences)


def _fill(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


if __name__ == "__main__":
    write()
