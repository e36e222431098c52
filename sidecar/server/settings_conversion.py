"""Converts settings to the values that chats use for tools and the context window. Reads no file."""

from __future__ import annotations

from ..chat.services.project_settings import ProjectSettings
from ..model.chats import Budgets, CompactionConfig, EffectiveConfig, GateSwitches
from ..model.failures import Failure
from ..policy.rules import Rule, checked_rule, parse_rule_text
from ..providers.registry import AUTO
from ..settings import Settings


class ProjectSettingsCache:
    """Converts the settings of a project once; they are needed several times per turn."""

    def __init__(self) -> None:
        self._cached: dict[str | None, tuple[Settings, ProjectSettings]] = {}

    def for_project(self, project: str | None, settings: Settings) -> ProjectSettings:
        kept = self._cached.get(project)
        if kept is None or kept[0] is not settings:
            kept = self._cached[project] = (settings, project_settings(settings))
        return kept[1]


def project_settings(settings: Settings) -> ProjectSettings:
    """Convert the settings. Raises for a rule that cannot be parsed: no tool may run with only some of the denials."""
    return ProjectSettings(settings, _rules(settings))


def chat_defaults(settings: Settings) -> EffectiveConfig:
    """The configuration of a chat that sets no keys of its own."""
    context, compaction = settings.context, settings.compaction
    return EffectiveConfig(
        model=settings.model or AUTO,
        engine=settings.engine,
        mode=settings.mode,
        max_steps=settings.session.max_steps,
        budgets=Budgets(
            per_file=context.per_file,
            open_files=context.open_files,
            diffs=context.diffs,
            git_diff=context.git_diff,
            retrieval=context.retrieval,
        ),
        gates=GateSwitches(
            open_files=context.gates.open_files,
            patches=context.gates.patches,
            git_diff=context.gates.git_diff,
            retrieval=context.gates.retrieval,
        ),
        compaction=CompactionConfig(
            enabled=compaction.enabled, background=compaction.background, blocking=compaction.blocking
        ),
        output_reserve=context.output_reserve or None,
    )


def _rules(settings: Settings) -> tuple[Rule, ...]:
    """The permission rules, with ids by position, since files do not name them: the user's second is `file-user-2`."""
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
    kind, pattern = parse_rule_text(text)
    return checked_rule(id=id, scope=scope, effect=effect, kind=kind, pattern=pattern, source="file")
