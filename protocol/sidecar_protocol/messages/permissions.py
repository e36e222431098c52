"""Permission and input requests to the user, and the rules that decide without asking.

What counts is the journalled `…requested` event. The request to the client only delivers it, and `…/answer` answers
it as well as the request's own reply.
"""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Json, Key, Wire, always
from .content import FileChange

__all__ = [
    "Confinement",
    "Decision",
    "InputAnswer",
    "InputAnswerParams",
    "InputOutcome",
    "InputRequest",
    "PermissionAnswer",
    "PermissionAnswerParams",
    "PermissionOption",
    "PermissionOutcome",
    "PermissionRequest",
    "PermissionRule",
    "PermissionRulesListParams",
    "PermissionRulesRemoveParams",
    "PermissionRulesResult",
    "PermissionRulesSetParams",
]

# The program has these words too (`policy/rules.py`, `model/content.py`). They are written out here because the
# contract imports nothing of ours: clients in other languages are generated from it, and a change of the program
# must not change it unseen. `tests/unit/protocol/test_limits.py` compares the two.
Decision = Literal["allow_once", "allow_chat", "allow_always", "deny_once", "deny_always"]
PermissionKind = Literal["read", "edit", "run", "fetch", "mcp", "app-tool"]
RuleKind = Literal[PermissionKind, "*"]
RuleScope = Literal["chat", "project", "user"]
ResolvedBy = Literal["user", "rule", "policy", "expiry", "cancel", "restart"]


class PermissionOption(Wire, kw_only=True, frozen=True):
    """One decision that the user may choose."""

    decision: Decision
    """What to answer with."""
    label: str
    """English text for a button."""
    rule: str | None = None
    """The rule that this decision adds, in its text form; absent where it adds none."""


class Confinement(Wire, kw_only=True, frozen=True):
    """Whether a command runs in the sandbox."""

    active: bool
    """Whether it does; without, it can reach the network and every file that the user can."""
    reason: str | None = None
    """Why it does not, in English."""
    reason_code: Literal["switched_off", "not_installed", "not_working", "in_terminal"] | None = None
    """The same by name, to translate: the settings switch the sandbox off, bubblewrap is not installed, the system
    does not let it work, or the command runs in a terminal of the editor."""


class PermissionRequest(ChatRef, kw_only=True, frozen=True):
    """A tool call that waits for a permission. What is shown is what will be done, byte for byte."""

    permission_id: str
    """The id of the request, for `permission/answer`."""
    turn_id: str
    """The turn that waits."""
    item_id: str
    """The item of the tool call."""
    kind: PermissionKind
    """What the permission is for."""
    title: str
    """A line to show."""
    subject: str
    """The path, command line, address or tool that it is about. Code is shown whole, under the line
    `run_code:LANGUAGE`; several commands one after the other, each under the line `# LABEL`."""
    changes: list[FileChange]
    """What would be changed, with the diff."""
    options: list[PermissionOption]
    """The answers to offer, in order."""
    folder: str | None = None
    """Where a command would run, relative to the project."""
    language: str | None = None
    """What the subject is written in when it is code; absent for a command line."""
    reason: str | None = None
    """Why it asks, such as a protected name or a command that was not understood."""
    reason_code: (
        Literal[
            "no_rule",
            "rule",
            "hook",
            "protected",
            "not_understood",
            "outside_project",
            "read_only",
            "policy_failed",
        ]
        | None
    ) = None
    """The same by name, to translate: no rule allows it, a rule or a hook asks, a protected or secret name, a command
    that was not understood, a file outside the project, a chat that only reads, or a defect of the policy."""
    sandbox: Confinement | None = None
    """Of a command or code: whether it would run in the sandbox, and why not."""
    expires_at: int | None = None
    """Milliseconds since 1970, when it expires and is denied; absent when it does not expire."""
    rewritten: Json | None = None
    """When a hook changed the call: `by`, the hook, and `input`, what the model had given. What is shown is the changed
    one."""
    hook: str | None = None
    """The hook that asks for the user's decision."""


class PermissionAnswer(Wire, kw_only=True, frozen=True):
    """The reply to `permission/request`."""

    decision: Decision
    """Allow or deny: this once, in this chat, or always in its project."""
    feedback: str | None = None
    """Text for the model, such as what to do instead."""
    then: Literal["continue", "stop"] = "continue"
    """After a denial: let the model continue, or end the turn."""


class PermissionAnswerParams(Key, kw_only=True, frozen=True):
    """What a reply to `permission/request` has, and which question it answers. With a key, one of another chat is
    -32002; without any, `permissionId` alone names it."""

    permission_id: str
    """The question."""
    decision: Decision
    """Allow or deny: this once, in this chat, or always in its project."""
    feedback: str | None = None
    """Text for the model, such as what to do instead."""
    then: Literal["continue", "stop"] = "continue"
    """After a denial: let the model continue, or end the turn."""


class PermissionOutcome(Wire, kw_only=True, frozen=True):
    """How a permission was decided, as `permission.resolved` records it."""

    permission_id: str
    """The question."""
    decision: Decision
    """What was decided."""
    by: ResolvedBy
    """Who decided: the user, a rule, policy (the user could not be asked), expiry, the end of the turn, or a
    restart."""
    rule_id: str | None = None
    """The rule that decided, or that the decision added."""
    feedback: str | None = None
    """The text that the model got."""
    reason: str | None = None
    """Why it was decided without asking."""


class InputRequest(ChatRef, kw_only=True, frozen=True):
    """A question of the model to the user: a flat form."""

    input_id: str
    """The id of the request, for `input/answer`."""
    turn_id: str
    """The turn that waits."""
    message: str
    """The question."""
    schema: Json
    """JSON Schema of the answer: an object whose members are texts, numbers, flags or choices."""
    item_id: str | None = None
    """The item of the tool call that asks."""
    expires_at: int | None = None
    """Milliseconds since 1970, when it expires and is cancelled; absent when it does not expire."""


class InputAnswer(Wire, kw_only=True, frozen=True):
    """The reply to `input/request`."""

    action: Literal["accept", "decline", "cancel"]
    """The form was filled in, declined, or dismissed."""
    values: Json = {}
    """What was filled in, by member."""


class InputAnswerParams(Key, kw_only=True, frozen=True):
    """What a reply to `input/request` has, and which question it answers. With a key, one of another chat is -32002;
    without any, `inputId` alone names it."""

    input_id: str
    """The question."""
    action: Literal["accept", "decline", "cancel"]
    """The form was filled in, declined, or dismissed."""
    values: Json = {}
    """What was filled in, by member."""


class InputOutcome(Wire, kw_only=True, frozen=True):
    """How a question ended, as `input.resolved` records it."""

    input_id: str
    """The question."""
    action: Literal["accept", "decline", "cancel"]
    """What was done."""
    by: ResolvedBy
    """Who ended it."""
    values: Json = always({})
    """What was filled in."""


class PermissionRule(Wire, kw_only=True, frozen=True):
    """A rule that decides without asking. Deny takes precedence over ask, ask over allow, in all scopes together."""

    id: str
    """The id of the rule, for `permissionRules/remove`."""
    scope: RuleScope
    """Where it applies: in this chat, in the project, or everywhere."""
    effect: Literal["allow", "ask", "deny"]
    """What it decides."""
    kind: RuleKind
    """What it is about; `*` for anything."""
    pattern: str
    """The paths, command lines, addresses or tools that it is about."""
    rule: str
    """Both as one text, `kind(pattern)`."""
    source: str
    """Where it comes from: an answer, a method, or the file that has it."""
    folder: str | None = None
    """The folder that it applies to; absent for everywhere."""
    created_at: int | None = None
    """Milliseconds since 1970; absent for a rule of a file."""


class PermissionRulesListParams(Key, kw_only=True, frozen=True):
    scope: RuleScope | None = None
    """Only rules of this scope; all that apply in the chat when absent."""


class PermissionRulesSetParams(Key, kw_only=True, frozen=True):
    """Either `rule`, or `kind` and `pattern`, one of which may be absent for any. The effect of a rule that is there is
    changed."""

    scope: RuleScope
    """Where it applies: in this chat, in its project, or everywhere."""
    effect: Literal["allow", "ask", "deny"]
    """What it decides."""
    rule: str | None = None
    """The rule in its text form, `kind(pattern)`."""
    kind: RuleKind | None = None
    """What it is about."""
    pattern: str | None = None
    """The paths, command lines, addresses or tools that it is about."""


class PermissionRulesRemoveParams(Key, kw_only=True, frozen=True):
    id: str
    """The rule to remove. Removing one that does not exist changes nothing."""


class PermissionRulesResult(Wire, kw_only=True, frozen=True):
    """The rules that apply in the chat, after the change."""

    items: list[PermissionRule]
    """The rules, in the order in which they are checked."""
    rule_id: str | None = None
    """The rule that was set or removed; absent when there was none."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""
