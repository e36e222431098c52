"""Whether a tool may go ahead, must ask, or may not. Pure: who asks, and what is recorded, is not known here.

The order: rules that deny, what the read-only mode denies, protected names, rules that ask, a hook that asks, rules
that allow, a hook that allows, the mode. So nothing that gives leave outweighs what stops it, whichever scope it stands
in.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from . import code, matching
from .commands import Parsed, Simple, parse, too_long
from .programs import only_reads, program
from .protected import normal, protected, secret
from .rules import MAX_EXACT, Effect, Kind, Rule, Scope, to_text

Leave = Literal["read", "edit", "run", "fetch", "mcp", "app-tool"]

MAX_SUGGESTED = 20
"""Files of one call for which a standing answer is offered: a longer list nobody reads."""


class Subject(msgspec.Struct, frozen=True):
    """What a call wants to do: a path, command line, address or `server/tool` (`text`).

    `paths` are all files of an edit, else `text` is the one; `commands` likewise of several command lines that one
    answer is asked for. `folder` is where a command would run, relative to the project. `reads_only` is a foreign
    tool's own word that it changes nothing. `after` is the address that leave was given for in this call, and which
    redirects to this one. `language` says that `text` is code, under its heading (`code.subject`).
    """

    kind: Leave
    text: str
    paths: tuple[str, ...] = ()
    folder: str | None = None
    reads_only: bool = False
    after: str | None = None
    language: str | None = None
    commands: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        return self.paths or (self.text,)


class Decision(msgspec.Struct, frozen=True):
    effect: Effect
    by: Literal["rule", "policy", "hook"]
    rule: Rule | None
    reason: str


class HookWord(msgspec.Struct, frozen=True):
    """What a hook says of a call. Its yes counts where nothing but the mode would ask; its no has been heard before."""

    effect: Literal["allow", "ask"]
    reason: str
    hook: str


class Suggestion(msgspec.Struct, frozen=True):
    """A standing answer that a person could give: the rules that it would record, one for each pattern."""

    decision: Literal["allow_chat", "allow_always", "deny_always"]
    scope: Scope
    effect: Effect
    kind: Kind
    patterns: tuple[str, ...]
    folder: str | None = None

    @property
    def text(self) -> str:
        return ", ".join(to_text(self.kind, pattern) for pattern in self.patterns)


def decide(
    subject: Subject,
    mode: str,
    rules: Sequence[Rule],
    folders: Sequence[str] = (),
    hook: HookWord | None = None,
) -> Decision:
    """`folders` are the further ones that belong to the project, absolute; accept-edits holds in them too."""
    parsed = _parsed(subject)
    denying = _stopping("deny", subject, parsed, rules)
    if denying:
        return _by_rule(denying)
    if mode == "read-only" and subject.kind in ("edit", "run", "fetch"):
        return _policy("deny", "the chat is read-only")
    reason = _protection(subject, parsed) or _doubtful(subject, rules)
    if reason:
        return _policy("ask", reason)
    asking = _stopping("ask", subject, parsed, rules)
    if asking:
        return _by_rule(asking)
    if mode == "read-only" and subject.kind in ("mcp", "app-tool") and not subject.reads_only:
        return _policy("ask", "the chat is read-only, and this tool may change something")
    if hook and hook.effect == "ask":
        return _by_hook(hook)
    allowing = _allowing(subject, parsed, rules)
    if allowing:
        return _by_rule(allowing)
    if hook and not (subject.kind == "read" and any(map(secret, subject.files))):
        return _by_hook(hook)
    return _by_mode(subject, parsed, mode, folders)


def safe_decide(
    subject: Subject,
    mode: str,
    rules: Sequence[Rule],
    folders: Sequence[str] = (),
    hook: HookWord | None = None,
) -> Decision:
    """As `decide`; a fault in the policy itself asks, and says so. It must never let anything through."""
    try:
        return decide(subject, mode, rules, folders, hook)
    except Exception as error:
        return _policy("ask", f"the permission policy failed ({type(error).__name__}: {error})"[:300])


def suggestions(subject: Subject) -> tuple[Suggestion, ...]:
    """The standing answers on offer. Protected names have none that allows: they ask each time."""
    patterns = _suggested(subject)
    if not patterns:
        return ()
    folder = normal(subject.folder or ".") if subject.kind == "run" else None
    deny = Suggestion("deny_always", "project", "deny", subject.kind, patterns)
    if any(_protection(each, _parsed(each)) for each in _each(subject)):
        return (deny,)
    return (
        Suggestion("allow_chat", "chat", "allow", subject.kind, patterns, folder),
        Suggestion("allow_always", "project", "allow", subject.kind, patterns, folder),
        deny,
    )


def _each(subject: Subject) -> list[Subject]:
    """A subject for each of its commands."""
    if not subject.commands:
        return [subject]
    return [msgspec.structs.replace(subject, text=text, commands=()) for text in subject.commands]


def _parsed(subject: Subject) -> Parsed | None:
    """The command line; None for what is none."""
    return parse(subject.text) if subject.kind == "run" and subject.language is None else None


def _stopping(effect: Effect, subject: Subject, parsed: Parsed | None, rules: Sequence[Rule]) -> Rule | None:
    """The first rule of this effect that speaks of any part of the subject."""
    return next((rule for rule in rules if rule.effect == effect and _stops(rule, subject, parsed)), None)


def _stops(rule: Rule, subject: Subject, parsed: Parsed | None) -> bool:
    if rule.kind == "*":
        return True
    if parsed is not None and rule.kind in ("read", "edit"):
        opened = _redirected(subject, parsed, "write" if rule.kind == "edit" else "read")
        return any(_path_stops(rule, path) for path in opened)
    if rule.kind != subject.kind:
        return False
    if subject.kind in ("read", "edit"):
        return any(_path_stops(rule, path) for path in subject.files)
    if subject.language is not None:
        return code.stops(rule, subject.language, code.body(subject.text))
    if rule.exact is not None:
        return rule.exact.split() == subject.text.split()
    if parsed is not None:
        return matching.run_wide(rule.pattern, subject.text, parsed)
    if subject.kind == "fetch":
        return matching.fetch_wide(rule.pattern, subject.text)
    return matching.tool(rule.pattern.casefold(), subject.text.casefold())


def _path_stops(rule: Rule, path: str) -> bool:
    if rule.exact is not None:
        return normal(rule.exact).casefold() == normal(path).casefold()
    return matching.path_wide(rule.pattern, path)


def _protection(subject: Subject, parsed: Parsed | None) -> str | None:
    """Why this asks whatever the rules and the mode."""
    if subject.kind == "edit":
        return next(filter(None, map(protected, subject.files)), None)
    if subject.kind != "run":
        return None
    if too_long(subject.text):
        return "the command line is too long to look through"
    if parsed is None:
        return _named(code.words(code.body(subject.text)), protected)
    if not parsed.commands:
        words = [word for words in matching.loose_words(subject.text) for word in words]
        return _named([subject.folder or "", *words], protected)
    # The line may go to other folders first, and write or name a file in any of them.
    visited = [word for simple in parsed.commands if program(simple.argv) == "cd" for word in simple.argv[1:]]
    here = posixpath.join(subject.folder or "", *(word.lstrip("/") for word in visited))
    named = [word for simple in parsed.commands if not only_reads(simple.argv) for word in simple.argv[1:]]
    written = _redirected(subject, parsed, "write")
    return _named([*written, *named, *(posixpath.join(here, word) for word in [*written, *named])], protected)


def _doubtful(subject: Subject, rules: Sequence[Rule]) -> str | None:
    """Why code asks that may do what a rule stops commands from."""
    if subject.language is None:
        return None
    text = code.body(subject.text)
    stopping = (rule for rule in rules if rule.kind == "run" and rule.effect != "allow")
    found = next((rule for rule in stopping if code.may_run(rule, text)), None)
    return f"the code may do what a rule stops: {to_text(found.kind, found.pattern)}"[:300] if found else None


def _redirected(subject: Subject, parsed: Parsed, wanted: Literal["read", "write"]) -> list[str]:
    """The files that the line's redirections open so, relative to the project."""
    spared = "/dev/null"
    return [
        posixpath.join(subject.folder or "", redirect.target)
        for simple in parsed.commands
        for redirect in simple.redirects
        if redirect.direction in (wanted, "both") and redirect.target != spared
    ]


def _named(words: Iterable[str], check: Callable[[str], str | None]) -> str | None:
    """What `check` says of the first path in these words, also within an option, an address or a script."""
    for word in dict.fromkeys(words):
        for piece in (word, *re.split(r"[\s=:@,;&|<>()\"'`$]+", word)):
            reason = check(piece)
            if reason:
                return reason
    return None


def _allowing(subject: Subject, parsed: Parsed | None, rules: Sequence[Rule]) -> Rule | None:
    """The rule that allows the whole subject; where several had to, the first of them."""
    allow = [rule for rule in rules if rule.effect == "allow" and rule.kind in ("*", subject.kind)]
    if subject.kind == "run":
        # The same text is one thing as a command line and another as code.
        allow = [rule for rule in allow if code.speaks_of_code(rule) == (parsed is None)]
        exact = (rule for rule in allow if rule.exact == subject.text and _same_folder(rule, subject))
        return next(exact, None) or _all_allowed(subject, parsed, allow, rules)
    if subject.kind in ("read", "edit"):
        found = [next((rule for rule in allow if _path_allowed(rule, path)), None) for path in subject.files]
        return found[0] if all(found) else None
    return next((rule for rule in allow if _other_allowed(rule, subject)), None)


def _same_folder(rule: Rule, subject: Subject) -> bool:
    return normal(rule.folder or ".") == normal(subject.folder or ".")


def _path_allowed(rule: Rule, path: str) -> bool:
    if rule.exact is not None:
        return normal(rule.exact) == normal(path)
    return secret(path) is None and matching.path_narrow(rule.pattern, path)


def _other_allowed(rule: Rule, subject: Subject) -> bool:
    if rule.exact is not None:
        return rule.exact == subject.text
    match = matching.fetch_narrow if subject.kind == "fetch" else matching.tool
    return match(rule.pattern, subject.text)


def _all_allowed(
    subject: Subject, parsed: Parsed | None, allow: Sequence[Rule], rules: Sequence[Rule]
) -> Rule | None:
    """Every command of the line needs a rule that speaks for it, and none may write a file besides. Code needs one for
    its language, and may not name what is kept back."""
    kept = [rule for rule in rules if rule.kind == "read" and rule.effect != "allow"]

    def kept_back(path: str) -> str | None:
        whole = posixpath.join(subject.folder or "", path)
        return secret(whole) or next(
            (rule.pattern for rule in kept if path and _path_stops(rule, whole)), None
        )

    if parsed is None:
        found = next((rule for rule in allow if code.allows(rule, subject.language or "")), None)
        return found if _named(code.words(code.body(subject.text)), kept_back) is None else None
    if not parsed.commands or any(simple.written for simple in parsed.commands):
        return None
    if any(map(kept_back, _redirected(subject, parsed, "read"))):
        return None
    each = [
        next((rule for rule in allow if _speaks_for(rule, simple, kept_back)), None)
        for simple in parsed.commands
    ]
    return each[0] if all(each) else None


def _speaks_for(rule: Rule, simple: Simple, kept_back: Callable[[str], str | None]) -> bool:
    """A rule whose every word is spelled out may name anything, but not what takes its orders from a pipe."""
    if rule.exact is not None or not matching.words_narrow(rule.pattern, simple.argv):
        return False
    if "*" not in rule.pattern:
        return simple.risk is None or not simple.fed
    return simple.risk is None and _named(simple.argv[1:], kept_back) is None


def _by_mode(subject: Subject, parsed: Parsed | None, mode: str, folders: Sequence[str]) -> Decision:
    if mode == "auto":
        return _policy("allow", "the mode is auto")
    if subject.kind == "read":
        reason = next(filter(None, map(secret, subject.files)), None)
        return _policy("ask", reason) if reason else _policy("allow", "reading needs no leave")
    if subject.kind == "fetch" and subject.after and matching.same_place(subject.after, subject.text):
        return _policy("allow", "it is on the host that leave was given for")
    if subject.kind == "app-tool" and subject.reads_only:
        return _policy("allow", "the app's tool only reads")
    if subject.kind == "edit" and mode == "accept-edits":
        if all(_inside(path, folders) for path in subject.files):
            return _policy("allow", "edits in the project are accepted")
        return _policy("ask", "it is outside the project")
    if parsed is not None and parsed.unclear:
        return _policy("ask", f"the command is not understood: {parsed.unclear}")
    return _policy("ask", "no rule allows it")


def _inside(path: str, folders: Sequence[str]) -> bool:
    path = normal(path)
    if path.startswith("/"):
        return any(path.startswith(f"{normal(folder).rstrip('/')}/") for folder in folders)
    return path.split("/")[0] != ".."


def _by_rule(rule: Rule) -> Decision:
    words = {"allow": "allows", "ask": "asks for", "deny": "denies"}
    return Decision(
        rule.effect, "rule", rule, f"a rule {words[rule.effect]} {to_text(rule.kind, rule.pattern)}"[:300]
    )


def _by_hook(hook: HookWord) -> Decision:
    words = {"allow": "allows it", "ask": "asks"}
    return Decision(hook.effect, "hook", None, f"the hook {hook.hook} {words[hook.effect]}: {hook.reason}")


def _policy(effect: Effect, reason: str) -> Decision:
    return Decision(effect, "policy", None, reason)


def _suggested(subject: Subject) -> tuple[str, ...]:
    """The patterns of a standing answer: as little as was asked for."""
    if subject.kind == "fetch":
        found = matching.address(subject.text)
        return (found.place,) if found else ()
    if subject.kind in ("read", "edit"):
        patterns = tuple(f"={normal(path)}" for path in subject.files)
    elif subject.commands:
        patterns = tuple(dict.fromkeys(f"={command}" for command in subject.commands))
    elif subject.kind == "run" or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", subject.text):
        patterns = (f"={subject.text}",)
    else:
        patterns = (subject.text,)
    fits = all(
        len(pattern) <= MAX_EXACT and "\0" not in pattern and pattern.strip("= \t\n") for pattern in patterns
    )
    return patterns if fits and len(patterns) <= MAX_SUGGESTED else ()
