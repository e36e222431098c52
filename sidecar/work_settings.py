"""What the settings say about tools and the window, in the terms of the chats. Reads no file, and starts nothing."""

from __future__ import annotations

from typing import Any

from .chat.desk import WorkSettings
from .model.failures import Failure
from .model.index import IndexSettings
from .model.pages import FetchSettings
from .policy.routes import Routing
from .policy.rules import Rule, checked, from_text
from .settings import Settings
from .workspace.open_files import Limits


class KeptWorkSettings:
    """Made once of the settings that were read for a project, and asked for several times a turn."""

    def __init__(self) -> None:
        self._kept: dict[str | None, tuple[Settings, WorkSettings]] = {}

    def of(self, project: str | None, settings: Settings) -> WorkSettings:
        kept = self._kept.get(project)
        if kept is None or kept[0] is not settings:
            kept = self._kept[project] = (settings, work_settings(settings))
        return kept[1]


def work_settings(settings: Settings) -> WorkSettings:
    """Raises for a permission rule that is not understood: nothing may run on half of what somebody denied."""
    return WorkSettings(
        sandbox=settings.sandbox,
        files=Limits(settings.open_files.max_recent, settings.open_files.max_pinned),
        max_file_bytes=settings.open_files.max_file_bytes,
        max_patches=settings.patches.max_entries,
        max_patch_bytes=settings.patches.max_bytes,
        rules=_rules(settings),
        expiry_s=settings.permissions.expiry or None,
        allow=settings.tools.allow,
        deny=settings.tools.deny,
        mcp_servers=settings.mcp_servers(),
        max_seconds=settings.session.max_seconds or None,
        max_tokens=settings.session.max_tokens or None,
        rules_enabled=settings.rules.enabled,
        rule_paths=settings.rules.paths,
        max_rule_tokens=settings.context.rules,
        compaction_target=settings.compaction.target,
        keep_turns=settings.compaction.keep_turns,
        hooks_enabled=settings.hooks.enabled,
        claude_hooks=settings.hooks.claude_settings,
        hook_paths=settings.hooks.paths,
        routing=_routing(settings),
        index=index_settings(settings),
        fetch=_fetch(settings),
        snapshot_interval=settings.session.snapshot_interval,
        max_snapshots=settings.session.max_snapshots,
        project_files=settings.project.files,
    )


def index_settings(settings: Settings) -> IndexSettings:
    index = settings.index
    return IndexSettings(**{name: getattr(index, name) for name in index.__slots__})


def chat_defaults(settings: Settings) -> dict[str, Any]:
    """What a chat's configuration starts from, where it is about the window, as the chat itself would write it."""
    context, compaction = settings.context, settings.compaction
    return {
        "budgets": {
            "perFile": context.per_file,
            "openFiles": context.open_files,
            "diffs": context.diffs,
            "gitDiff": context.git_diff,
            "retrieval": context.retrieval,
        },
        "gates": {
            "openFiles": context.gates.open_files,
            "patches": context.gates.patches,
            "gitDiff": context.gates.git_diff,
            "retrieval": context.gates.retrieval,
        },
        "compaction": {
            "enabled": compaction.enabled,
            "background": compaction.background,
            "blocking": compaction.blocking,
        },
        "outputReserve": context.output_reserve or None,
    }


def _fetch(settings: Settings) -> FetchSettings:
    fetch = settings.fetch
    return FetchSettings(
        enabled=fetch.enabled,
        cache_enabled=fetch.cache_enabled,
        cache_ttl=fetch.cache_ttl,
        cache_max_bytes=fetch.cache_max_bytes,
        allow_private=fetch.allow_private,
    )


def _routing(settings: Settings) -> Routing:
    routing = settings.routing
    return Routing(
        big_reads=routing.big_reads == "on",
        big_reads_bytes=routing.big_reads_bytes,
        fetches=routing.fetches == "on",
        noisy_commands=routing.noisy_commands == "on",
        noisy=routing.noisy_programs,
        long_listings=routing.long_listings == "on",
        long_listings_max=routing.long_listings_max,
    )


def _rules(settings: Settings) -> tuple[Rule, ...]:
    """Named by their place, since a file gives its rules no names: the second of the user's is `file-user-2`."""
    rules: list[Rule] = []
    counts = {"user": 0, "project": 0}
    for scope, effect, text, path in settings.permission_rules():
        counts[scope] += 1
        try:
            rules.append(_rule(f"file-{scope}-{counts[scope]}", scope, effect, text))
        except Failure as failure:
            raise Failure(
                "precondition_failed",
                f"{path}: `permissions.{effect}`: {text[:80]!r} is not understood: {failure.message}",
                action="fix_settings",
            ) from failure
    return tuple(rules)


def _rule(id: str, scope: str, effect: str, text: str) -> Rule:
    kind, pattern = from_text(text)
    return checked(id=id, scope=scope, effect=effect, kind=kind, pattern=pattern, source="file")
