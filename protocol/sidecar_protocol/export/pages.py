"""Which page of the reference a method is on: one page per group of methods, named by its file."""

from __future__ import annotations

from typing import NamedTuple

from sidecar_protocol.catalog import METHODS, Method


class Page(NamedTuple):
    """A page of methods. `prefixes` are the first halves of their names, or whole names."""

    file: str
    title: str
    about: str
    prefixes: tuple[str, ...]


PAGES = (
    Page(
        "connection",
        "Connection",
        "Beginning and ending.",
        ("initialize", "ping", "rpc.discover", "shutdown"),
    ),
    Page("prompts", "Prompts and turns", "Prompts, their queue, and running turns.", ("prompt", "turn")),
    Page(
        "branches",
        "Branches and context",
        "Forks and rewinds, and what the model is sent.",
        ("chat/fork", "chat/rewind", "chat/context", "chat/compact", "chat/uncompact", "snapshots"),
    ),
    Page(
        "chats",
        "Chats",
        "Opening, listing and searching chats, their history and events.",
        ("chat", "events", "history"),
    ),
    Page(
        "files",
        "Files and changes",
        "Open files, recorded changes, git, and bytes.",
        ("files", "patches", "git", "blob"),
    ),
    Page(
        "permissions",
        "Permissions and questions",
        "What waits for the user, and standing rules.",
        ("permission", "input", "permissionRules", "project"),
    ),
    Page(
        "tools",
        "Tools, commands and rules",
        "What the model may use and what it gets.",
        ("tools", "commands", "rules", "hooks"),
    ),
    Page("search", "Index", "Stored text that can be searched.", ("index",)),
    Page(
        "models",
        "Providers, models, engines",
        "Keys, models and engines.",
        ("providers", "models", "engines"),
    ),
    Page(
        "settings",
        "Settings and checks",
        "Settings, stored data, figures and diagnosis.",
        ("settings", "data", "projects", "stats", "doctor"),
    ),
)
"""Whole names come before the groups that their first halves name."""

CLIENT_PAGE, EVENTS_PAGE, TYPES_PAGE = "client", "events", "types"


def page_of(method: Method) -> Page:
    whole = next((page for page in PAGES if method.name in page.prefixes), None)
    return whole or next(page for page in PAGES if method.name.partition("/")[0] in page.prefixes)


def methods_of(page: Page) -> list[Method]:
    return [method for method in METHODS.values() if page_of(method) is page]
