"""Whether a tool call is allowed, asks, or is denied. Pure: does not know who asks the user and what is recorded.

The order: deny rules, what the read-only mode denies, protected names, ask rules, a hook that asks, allow rules, what
may be a stopped command in disguise, a hook that allows, the mode. So nothing that allows a call outweighs what stops
it, whatever its scope.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from . import code, matching
from .command_variants import may_be_meant
from .commands import ParsedCommand, SimpleCommand, is_too_long, parse_command
from .programs import only_reads, replaces_programs, unknown_reason, unseen_writes_reason
from .protected import edit_reason, normalized_path, protected_reason, secret_reason
from .rules import EVERYTHING, Effect, PermissionKind, Rule, rule_text
from .withheld_files import (
    MAX_WORD,
    find_in_command,
    find_named,
    find_withheld,
    make_check,
    path_stops,
    visited_folders,
)


class PathNames(Protocol):
    """The other names of a path of the project."""

    def __call__(self, path: str, /) -> Sequence[str]: ...
    def aliases(self, path: str, /) -> Sequence[str]:
        """Return further names by which a rule may stop it; a rule that allows need not match them."""

    def unchecked(self, path: str, /) -> str | None:
        """Return why further names of the path may not have been found; None when all were."""

    def runs_outside(self, path: str, /) -> bool:
        """Return whether a change of the file may make something run outside of the sandbox."""

    def absolute(self, path: str, /) -> str | None:
        """Return the absolute path, for rules with absolute patterns."""

    def expand(self, pattern: str, /) -> Sequence[str]:
        """Return all files that a shell expands a pattern to."""


class Subject(msgspec.Struct, frozen=True):
    """What a call intends to do: a path, command line, URL or `server/tool` (`text`).

    `paths` are all files of an edit, else `text` is the only one; `commands` are the command lines when one decision
    covers several. `folder` is the working folder of a command, relative to the project. `reads_only` is the claim of
    a foreign tool that it changes nothing. `after` is the permitted URL of this call that redirects to this one.
    `language` says that `text` is code, under its heading (`code_subject`). `real` finds the other names of a path
    (symbolic and hard links): what stops one name stops all of them. `always_asks` is why neither a rule nor the mode
    allows this; `unhidden` why a command could read what read rules withhold, as the sandbox does not hide it.
    """

    kind: PermissionKind
    text: str
    paths: tuple[str, ...] = ()
    folder: str | None = None
    reads_only: bool = False
    after: str | None = None
    language: str | None = None
    commands: tuple[str, ...] = ()
    real: PathNames | None = None
    always_asks: str | None = None
    unhidden: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Return all names of the files, also the targets of links."""
        return tuple(dict.fromkeys(name for path in self.paths or (self.text,) for name in self.names(path)))

    @property
    def stoppable_files(self) -> tuple[str, ...]:
        """Return all names by which a rule or a protected name may stop one of the files."""
        return tuple(
            dict.fromkeys(name for path in self.paths or (self.text,) for name in self.stoppable_names(path))
        )

    def names(self, path: str) -> tuple[str, ...]:
        return (path, *self.real(path)) if self.real else (path,)

    def stoppable_names(self, path: str, rule: Rule | None = None) -> tuple[str, ...]:
        if self.real is None:
            return (path,)
        found = (*self.names(path), *self.real.aliases(path))
        if rule is None or not (rule.exact or rule.pattern).startswith("/"):
            return found
        # Only for absolute patterns: the folders above the project say nothing about its files.
        whole = self.real.absolute(path)
        return found if whole is None else (*found, whole)

    def is_stopped(self, rule: Rule, paths: Sequence[str]) -> bool:
        """Return whether a path rule that denies or asks matches one of these, by any of its names."""
        return any(path_stops(rule, name) for path in paths for name in self.stoppable_names(path, rule))


HOST_ASKED = "host-asked"
"""The mode of a call whose host has asked its user: like `auto` for what the user has seen."""


AskCode = Literal["no_rule", "protected", "not_understood", "outside_project", "read_only", "policy_failed"]
"""Why policy asks, by a name that an app can translate."""


class PolicyDecision(msgspec.Struct, frozen=True):
    """`code` names the reason why policy asks or denies."""

    effect: Effect
    by: Literal["rule", "policy", "hook"]
    rule: Rule | None
    reason: str
    code: AskCode | None = None


class HookAdvice(msgspec.Struct, frozen=True):
    """What a hook says about a call. Its allow counts where only the mode would ask; its deny was applied before."""

    effect: Literal["allow", "ask"]
    reason: str
    hook: str


def decide(
    subject: Subject,
    mode: str,
    rules: Sequence[Rule],
    folders: Sequence[str] = (),
    hook: HookAdvice | None = None,
) -> PolicyDecision:
    """Decide about a call. `folders` are further absolute folders of the project; accept-edits applies in them too."""
    parsed = parse_subject(subject)
    # The order of these checks is the policy: everything that stops comes before everything that allows.
    denying = _first_stopping_rule("deny", subject, parsed, rules)
    if denying:
        return _by_rule(denying)
    if mode == "read-only" and subject.kind in ("edit", "run", "fetch"):
        return _by_policy("deny", "the chat is read-only", "read_only")
    if reason := subject.always_asks or protection_reason(subject, parsed):
        return _by_policy("ask", reason, "protected")
    if reason := _code_doubt(subject, rules):
        return _by_policy("ask", reason, "not_understood")
    asking = _first_stopping_rule("ask", subject, parsed, rules)
    if asking:
        return _by_rule(asking)
    if mode == "read-only" and subject.kind in ("mcp", "app-tool") and not subject.reads_only:
        return _by_policy("ask", "the chat is read-only, and this tool may change something", "read_only")
    if hook and hook.effect == "ask":
        return _by_hook(hook)
    reason = _possible_evasion(subject, parsed, rules)
    # A rule that allows everything was not written for a line that another rule may stop.
    allowing = _allowing_rule(subject, parsed, [rule for rule in rules if not (reason and _is_broad(rule))])
    if allowing:
        return _by_rule(allowing)
    # In the other modes such a line asks anyway; the reason would only hide theirs.
    reason = reason or _unhidden_reason(subject, parsed, rules)
    reason = reason if hook or mode in ("auto", HOST_ASKED) else None
    reason = reason or find_withheld(subject, parsed, rules)
    reason = reason or _unchecked_reason(subject, parsed)
    if reason:
        return _by_policy("ask", reason, "not_understood")
    if hook and not (subject.kind == "read" and any(map(secret_reason, subject.stoppable_files))):
        return _by_hook(hook)
    return _by_mode(subject, parsed, mode, folders)


def safe_decide(
    subject: Subject,
    mode: str,
    rules: Sequence[Rule],
    folders: Sequence[str] = (),
    hook: HookAdvice | None = None,
) -> PolicyDecision:
    """Decide; a bug in the policy itself asks, and says so. It must never allow anything."""
    try:
        return decide(subject, mode, rules, folders, hook)
    except Exception as error:
        reason = f"the permission policy failed ({type(error).__name__}: {error})"[:300]
        return _by_policy("ask", reason, "policy_failed")


def parse_subject(subject: Subject) -> ParsedCommand | None:
    """Return the parsed command line; None when the subject is none."""
    return parse_command(subject.text) if subject.kind == "run" and subject.language is None else None


def _first_stopping_rule(
    effect: Effect, subject: Subject, parsed: ParsedCommand | None, rules: Sequence[Rule]
) -> Rule | None:
    """Return the first rule of this effect that matches any part of the subject."""
    return next((rule for rule in rules if rule.effect == effect and _stops(rule, subject, parsed)), None)


def _stops(rule: Rule, subject: Subject, parsed: ParsedCommand | None) -> bool:
    if rule.kind == "*":
        return True
    if parsed is not None and rule.kind in ("read", "edit"):
        opened = _redirected_files(subject, parsed, "write" if rule.kind == "edit" else "read")
        return subject.is_stopped(rule, opened)
    if rule.kind != subject.kind:
        return False
    if subject.kind in ("read", "edit"):
        return subject.is_stopped(rule, subject.paths or (subject.text,))
    if subject.language is not None:
        return code.matches_code(rule, subject.language, code.code_of(subject.text))
    if rule.exact is not None:
        return rule.exact.split() == subject.text.split()
    if parsed is not None:
        return matching.command_may_match(rule.pattern, subject.text, parsed)
    if subject.kind == "fetch":
        return matching.url_may_match(rule.pattern, subject.text)
    return matching.tool_matches(rule.pattern.casefold(), subject.text.casefold())


def protection_reason(subject: Subject, parsed: ParsedCommand | None) -> str | None:
    """Return why this asks regardless of rules and mode."""
    if subject.kind == "edit":
        found = next(filter(None, map(edit_reason, subject.stoppable_files)), None)
        return found or _outside_reason(subject)
    if subject.kind != "run":
        return None
    if is_too_long(subject.text):
        return "the command line is too long to look through"

    def check(path: str) -> str | None:
        # A flag or a lone number is not a path; a lookup would only cost time.
        names = subject.stoppable_names(path) if path and len(path) <= MAX_WORD else (path,)
        return next(filter(None, map(protected_reason, names)), None)

    if parsed is None:
        return find_named(code.file_words(code.code_of(subject.text)), check)
    if not parsed.commands:
        words = [word for words in matching.loose_words(subject.text) for word in words]
        placed = [posixpath.join(subject.folder or "", word) for word in words]
        return find_named([subject.folder or "", *words, *placed], check)
    # The line may change to other folders first, and write or name a file in any of them.
    visited = visited_folders(parsed)
    here = posixpath.join(subject.folder or "", *(word.lstrip("/") for word in visited))
    named = [word for simple in parsed.commands if not only_reads(simple.argv) for word in simple.argv[1:]]
    written = _redirected_files(subject, parsed, "write")
    there = [
        posixpath.join(folder, word) for word in [*written, *named] for folder in (here, subject.folder or "")
    ]
    return find_named([*written, *named, *there], check)


def _outside_reason(subject: Subject) -> str | None:
    """Return why an edit asks that would change what runs outside of the sandbox."""
    if subject.real is None:
        return None
    found = next(filter(subject.real.runs_outside, subject.paths or (subject.text,)), None)
    return f"{found[:200]} always asks: it may run outside of the sandbox" if found else None


def _unchecked_reason(subject: Subject, parsed: ParsedCommand | None) -> str | None:
    """Return why a call asks whose files may have names that were not checked, and that a rule may stop. A rule that
    allows the call was applied before.
    """
    if subject.real is None or subject.kind not in ("read", "edit", "run"):
        return None
    if subject.kind != "run":
        return next(filter(None, map(subject.real.unchecked, subject.paths or (subject.text,))), None)
    if parsed is not None and parsed.commands and all(only_reads(each.argv) for each in parsed.commands):
        return None
    return subject.real.unchecked(subject.folder or ".")


def _code_doubt(subject: Subject, rules: Sequence[Rule]) -> str | None:
    """Return why code asks that may do what a rule stops commands from doing."""
    if subject.language is None:
        return None
    text = code.code_of(subject.text)
    stopping = (rule for rule in rules if rule.kind == "run" and rule.effect != "allow")
    found = next((rule for rule in stopping if code.mentions_command(rule, text)), None)
    return (
        f"the code may do what a rule stops: {rule_text(found.kind, found.pattern)}"[:300] if found else None
    )


def _possible_evasion(subject: Subject, parsed: ParsedCommand | None, rules: Sequence[Rule]) -> str | None:
    """Return why this may be what a rule stops, in another spelling: then neither the mode `auto` nor a hook allows
    it.

    A command rule matches words. Where some rule denies or asks, a line runs without asking only when its words fully
    determine what runs. An edit rule matches paths, which such a line need not name.
    """
    if subject.kind != "run":
        return None
    stopping = {rule.kind: rule for rule in rules[::-1] if rule.effect != "allow"}
    if rule := stopping.get("run"):
        unclear = _unclear_reason(subject, parsed)
        if unclear:
            return f"it may do what a rule stops, {rule_text(rule.kind, rule.pattern)[:80]}: {unclear}"[:300]
    if parsed is not None and (found := _find_variant(parsed, rules)):
        return f"it may be what a rule stops in other words, {rule_text(found.kind, found.pattern)[:80]}"
    if (rule := stopping.get("edit")) and parsed is not None:
        unseen = next(filter(None, (unseen_writes_reason(simple.argv) for simple in parsed.commands)), None)
        if unseen:
            return f"it may change what a rule keeps, {rule_text(rule.kind, rule.pattern)[:80]}: {unseen}"[
                :300
            ]
    return None


def _unhidden_reason(subject: Subject, parsed: ParsedCommand | None, rules: Sequence[Rule]) -> str | None:
    """Return why this may read what a rule withholds: its words do not determine what runs, and nothing hides the
    files.
    """
    if subject.kind != "run" or subject.unhidden is None:
        return None
    rule = next((rule for rule in rules if rule.kind == "read" and rule.effect != "allow"), None)
    unclear = _unclear_reason(subject, parsed) if rule else None
    if rule is None or unclear is None:
        return None
    kept = rule_text(rule.kind, rule.pattern)[:80]
    return f"it may read what a rule keeps back, {kept}: {unclear}, and {subject.unhidden}"[:300]


def _is_broad(rule: Rule) -> bool:
    return rule.exact is None and (rule.kind == "*" or rule.pattern in EVERYTHING)


def _find_variant(parsed: ParsedCommand, rules: Sequence[Rule]) -> Rule | None:
    stopping = [rule for rule in rules if rule.kind == "run" and rule.effect != "allow"]
    return next(
        (rule for rule in stopping if any(may_be_meant(rule, simple) for simple in parsed.commands)), None
    )


def _unclear_reason(subject: Subject, parsed: ParsedCommand | None) -> str | None:
    """Return why it is unknown what runs, or None."""
    if parsed is None:
        return "the text does not show what code runs"
    if parsed.unclear:
        return parsed.unclear
    written = [path for simple in parsed.commands for path in simple.written]
    if path := next(filter(replaces_programs, written), None):
        return f"{path[:80]} may be a program"
    folders = [subject.folder or "", *visited_folders(parsed)]
    changes = written or any(not only_reads(simple.argv) for simple in parsed.commands)
    if changes and (folder := next(filter(replaces_programs, folders), None)):
        return f"it may copy or replace a program in {folder[:80]}"
    return next(filter(None, (unknown_reason(simple.argv) for simple in parsed.commands)), None)


def _redirected_files(subject: Subject, parsed: ParsedCommand, wanted: Literal["read", "write"]) -> list[str]:
    """Return the files that the redirections of the line open in this way, relative to the project."""
    spared = "/dev/null"
    return [
        posixpath.join(subject.folder or "", redirect.target)
        for simple in parsed.commands
        for redirect in simple.redirects
        if redirect.direction in (wanted, "both") and redirect.target != spared
    ]


def _allowing_rule(subject: Subject, parsed: ParsedCommand | None, rules: Sequence[Rule]) -> Rule | None:
    """Return the rule that allows the whole subject; when several are needed, the first of them."""
    allow = [rule for rule in rules if rule.effect == "allow" and rule.kind in ("*", subject.kind)]
    if subject.kind == "run":
        # The same text means one thing as a command line and another as code.
        allow = [rule for rule in allow if code.is_code_rule(rule) == (parsed is None)]
        exact = (rule for rule in allow if rule.exact == subject.text and _same_folder(rule, subject))
        return next(exact, None) or _rule_for_all(subject, parsed, allow, rules)
    if subject.kind in ("read", "edit"):
        # Every name needs a rule, links too: otherwise a permitted link would give access to its target.
        found = [next((rule for rule in allow if _path_allowed(rule, path)), None) for path in subject.files]
        return found[0] if all(found) else None
    return next((rule for rule in allow if _other_allowed(rule, subject)), None)


def _same_folder(rule: Rule, subject: Subject) -> bool:
    return normalized_path(rule.folder or ".") == normalized_path(subject.folder or ".")


def _path_allowed(rule: Rule, path: str) -> bool:
    if rule.exact is not None:
        return normalized_path(rule.exact) == normalized_path(path)
    return secret_reason(path) is None and matching.path_matches(rule.pattern, path)


def _other_allowed(rule: Rule, subject: Subject) -> bool:
    if rule.exact is not None:
        return rule.exact == subject.text
    match = matching.url_matches if subject.kind == "fetch" else matching.tool_matches
    return match(rule.pattern, subject.text)


def _rule_for_all(
    subject: Subject, parsed: ParsedCommand | None, allow: Sequence[Rule], rules: Sequence[Rule]
) -> Rule | None:
    """Every command of the line needs a rule that allows it, and none may write other files. Code needs a rule for
    its language, and must not name a file that a rule withholds.
    """

    def is_secret(path: str) -> str | None:
        whole = posixpath.join(subject.folder or "", path)
        return next(filter(None, map(secret_reason, subject.stoppable_names(whole))), None)

    if parsed is None:
        if find_withheld(subject, parsed, rules):
            return None
        found = next((rule for rule in allow if code.allows_language(rule, subject.language or "")), None)
        return found if find_named(code.file_words(code.code_of(subject.text)), is_secret) is None else None
    # A line that was not understood has no commands. `all` of nothing is true, so it must not get that
    # far.
    if not parsed.commands or any(simple.written for simple in parsed.commands):
        return None
    read = _redirected_files(subject, parsed, "read")
    if any(map(is_secret, read)) or any(map(make_check(subject, rules, "read"), read)):
        return None
    visited = visited_folders(parsed)

    def names_withheld(simple: SimpleCommand) -> bool:
        kept = find_in_command(subject, simple, rules, visited)
        return (kept or find_named(simple.argv[1:], is_secret)) is not None

    each = [
        next((rule for rule in allow if _allows_command(rule, simple, names_withheld)), None)
        for simple in parsed.commands
    ]
    return each[0] if all(each) else None


def _allows_command(
    rule: Rule, simple: SimpleCommand, names_withheld: Callable[[SimpleCommand], bool]
) -> bool:
    """A rule without a wildcard may name anything, but not a risky program that is fed from a pipe."""
    if rule.exact is not None or not matching.words_match(rule.pattern, simple.argv):
        return False
    if "*" not in rule.pattern:
        return simple.risk is None or not simple.fed
    return simple.risk is None and not names_withheld(simple)


def _by_mode(
    subject: Subject, parsed: ParsedCommand | None, mode: str, folders: Sequence[str]
) -> PolicyDecision:
    if mode == "auto":
        return _by_policy("allow", "the mode is auto")
    if mode == HOST_ASKED and not _leaves_host(subject):
        return _by_policy("allow", "the host of the agent has asked its user")
    if subject.kind == "read":
        reason = next(filter(None, map(secret_reason, subject.stoppable_files)), None)
        if reason:
            return _by_policy("ask", reason, "protected")
        return _by_policy("allow", "reading needs no permission")
    # The user saw the first address only: a redirect to another host asks again.
    if subject.kind == "fetch" and subject.after and not _leaves_host(subject):
        return _by_policy("allow", "it is on the host that was permitted")
    if subject.kind == "app-tool" and subject.reads_only:
        return _by_policy("allow", "the app's tool only reads")
    if subject.kind == "edit" and mode == "accept-edits":
        if all(_is_inside(path, folders) for path in subject.files):
            return _by_policy("allow", "edits in the project are accepted")
        return _by_policy("ask", "it is outside the project", "outside_project")
    if parsed is not None and parsed.unclear:
        return _by_policy("ask", f"the command is not understood: {parsed.unclear}", "not_understood")
    return _by_policy("ask", "no rule allows it", "no_rule")


def _leaves_host(subject: Subject) -> bool:
    """Whether a page redirects to another host than the one that was permitted."""
    is_redirect = subject.kind == "fetch" and subject.after is not None
    return is_redirect and not matching.same_origin(subject.after or "", subject.text)


def _is_inside(path: str, folders: Sequence[str]) -> bool:
    path = normalized_path(path)
    if path.startswith("/"):
        return any(path.startswith(f"{normalized_path(folder).rstrip('/')}/") for folder in folders)
    return path.split("/")[0] != ".."


def _by_rule(rule: Rule) -> PolicyDecision:
    words = {"allow": "allows", "ask": "asks for", "deny": "denies"}
    return PolicyDecision(
        rule.effect, "rule", rule, f"a rule {words[rule.effect]} {rule_text(rule.kind, rule.pattern)}"[:300]
    )


def _by_hook(hook: HookAdvice) -> PolicyDecision:
    words = {"allow": "allows it", "ask": "asks"}
    return PolicyDecision(
        hook.effect, "hook", None, f"the hook {hook.hook} {words[hook.effect]}: {hook.reason}"
    )


def _by_policy(effect: Effect, reason: str, code: AskCode | None = None) -> PolicyDecision:
    return PolicyDecision(effect, "policy", None, reason, code)
