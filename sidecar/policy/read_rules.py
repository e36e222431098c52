"""Which files may be read beside the permitted one: in walks, diffs, searches and automatic context.

The user cannot be asked about each file of a walk. So what a rule denies, what a rule asks for and what has a secret
name is excluded, by any of its names, and the caller reports it (`excluded_summary`). Pure except for the names,
which the caller's object looks up.
"""

from __future__ import annotations

from collections.abc import Sequence

from .decide import PathNames, PolicyDecision, Subject, safe_decide
from .protected import secret_reason
from .rules import Rule

MAX_NAMED = 5
"""Excluded files that are named; the rest is counted."""


class ReadRules:
    """For one call or prompt. `granted` is the permitted path, if any: the files beneath it do not ask again for the
    same reason.
    """

    def __init__(
        self, rules: Sequence[Rule], mode: str, names: PathNames | None, granted: str | None = None
    ) -> None:
        self._mode = mode
        self._names = names
        self._rules = [rule for rule in rules if rule.kind in ("read", "*")]
        self._stops = any(rule.effect != "allow" for rule in self._rules)
        self._granted = granted and self._decide(granted)
        self._is_secret = granted is not None and self._secret(granted) is not None

    def skip_reason(self, path: str, *, chosen: bool = False) -> str | None:
        """Return why this file is not read, or None. A file that the user has `chosen` by its path does not ask
        again.
        """
        held = None if chosen or self._is_secret else self._secret(path)
        if not self._stops and held is None:
            return None
        decision = self._decide(path)
        if decision.effect == "deny":
            return decision.reason
        if decision.rule is not None and decision.effect == "ask":
            asked = self._granted and self._granted.rule == decision.rule
            return None if chosen or asked else decision.reason
        if decision.effect == "ask" and self._secret(path) is None:
            return decision.reason  # the policy failed, which must allow nothing
        return held if decision.rule is None else None

    def _decide(self, path: str) -> PolicyDecision:
        # By the rules alone: a mode does not allow reading secrets that nobody asked for.
        return safe_decide(Subject("read", path, real=self._names), self._mode, self._rules)

    def _secret(self, path: str) -> str | None:
        names = Subject("read", path, real=self._names).stoppable_files
        return next(filter(None, map(secret_reason, names)), None)


def excluded_summary(left: Sequence[tuple[str, str]]) -> str:
    """Return how many files are excluded, the first of them, and why; empty when none is."""
    if not left:
        return ""
    count = "1 file is" if len(left) == 1 else f"{len(left)} files are"
    named = [f"{path} ({reason})" for path, reason in left[:MAX_NAMED]]
    more = [f"{len(left) - MAX_NAMED} more"] if len(left) > MAX_NAMED else []
    return f"{count} left out: {'; '.join([*named, *more])}"
