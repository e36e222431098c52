"""What a chat waits for a person to decide: permissions and inputs, and the rules that decide without asking.

What counts is the journalled `…requested` event. The request to the client only delivers it, and `…/answer` answers
it as well as the request's own reply.
"""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Json, Key, Wire
from .content import FileChange

__all__ = [
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

Decision = Literal["allow_once", "allow_chat", "allow_always", "deny_once", "deny_always"]
PermissionKind = Literal["read", "edit", "run", "fetch", "mcp", "app-tool"]
RuleKind = Literal["read", "edit", "run", "fetch", "mcp", "app-tool", "*"]
RuleScope = Literal["chat", "project", "user"]
ResolvedBy = Literal["user", "rule", "policy", "expiry", "cancel", "restart"]


class PermissionOption(Wire, kw_only=True, frozen=True):
    """One answer that a person may choose."""

    decision: Decision
    """What to answer with."""
    label: str
    """English words for a button."""
    rule: str | None = None
    """The rule that this decision adds, in its text form; absent where it adds none."""


class PermissionRequest(ChatRef, kw_only=True, frozen=True):
    """A tool call that waits for leave. What is shown is what will be done, byte for byte."""

    permission_id: str
    """Names the question; `permission/answer` takes it."""
    turn_id: str
    """The turn that waits."""
    item_id: str
    """The item of the tool call."""
    kind: PermissionKind
    """What leave is asked for."""
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
    expires_at: int | None = None
    """Milliseconds since 1970, when it is denied by itself; absent when it waits."""
    rewritten: Json | None = None
    """When a hook changed the call: `by`, the hook, and `input`, what the model had given. What is shown is the changed
    one."""
    hook: str | None = None
    """The hook that wants a person to decide."""


class PermissionAnswer(Wire, kw_only=True, frozen=True):
    """The reply to `permission/request`."""

    decision: Decision
    """Leave, or none: this once, in this chat, or always in its project."""
    feedback: str | None = None
    """Words for the model, such as what to do instead."""
    then: Literal["continue", "stop"] = "continue"
    """After a denial: let the model go on, or end the turn."""


class PermissionAnswerParams(PermissionAnswer, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What a reply to `permission/request` has, and which question it answers."""

    permission_id: str
    """The question."""


class PermissionOutcome(Wire, kw_only=True, frozen=True):
    """How a permission was decided, as `permission.resolved` records it."""

    permission_id: str
    """The question."""
    decision: Decision
    """What was decided."""
    by: ResolvedBy
    """Who decided: a person, a rule, policy (nobody could be asked), expiry, the end of the turn, or a restart."""
    rule_id: str | None = None
    """The rule that decided, or that the decision added."""
    feedback: str | None = None
    """What the model was told."""
    reason: str | None = None
    """Why it was decided without asking."""


class InputRequest(ChatRef, kw_only=True, frozen=True):
    """A question of the model to the person: a flat form."""

    input_id: str
    """Names the question; `input/answer` takes it."""
    turn_id: str
    """The turn that waits."""
    message: str
    """The question."""
    schema: Json
    """JSON Schema of the answer: an object whose members are texts, numbers, flags or choices."""
    item_id: str | None = None
    """The item of the tool call that asks."""
    expires_at: int | None = None
    """Milliseconds since 1970, when it is cancelled by itself; absent when it waits."""


class InputAnswer(Wire, kw_only=True, frozen=True):
    """The reply to `input/request`."""

    action: Literal["accept", "decline", "cancel"]
    """The form was filled, refused, or put away."""
    values: Json = {}
    """What was filled in, by member."""


class InputAnswerParams(InputAnswer, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What a reply to `input/request` has, and which question it answers."""

    input_id: str
    """The question."""


class InputOutcome(Wire, kw_only=True, frozen=True):
    """How a question ended, as `input.resolved` records it."""

    input_id: str
    """The question."""
    action: Literal["accept", "decline", "cancel"]
    """What was done."""
    by: ResolvedBy
    """Who ended it."""
    values: Json = {}
    """What was filled in."""


class PermissionRule(Wire, kw_only=True, frozen=True):
    """What is decided without asking. Deny goes before ask, ask before allow, in all scopes together."""

    id: str
    """Names the rule; `permissionRules/remove` takes it."""
    scope: RuleScope
    """Where it holds: in this chat, in the project, or everywhere."""
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
    """The folder that it holds in; absent for everywhere."""
    created_at: int | None = None
    """Milliseconds since 1970; absent for a rule of a file."""


class PermissionRulesListParams(Key, kw_only=True, frozen=True):
    scope: RuleScope | None = None
    """Only rules of this scope; all that hold in the chat when absent."""


class PermissionRulesSetParams(Key, kw_only=True, frozen=True):
    """Either `rule`, or `kind` and `pattern`, one of which may be absent for any. The effect of a rule that is there is
    changed."""

    scope: RuleScope
    """Where it holds: in this chat, in its project, or everywhere."""
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
    """The rule to take back. Removing one that is gone changes nothing."""


class PermissionRulesResult(Wire, kw_only=True, frozen=True):
    """The rules that hold in the chat, after the change."""

    items: list[PermissionRule]
    """The rules, in the order in which they are looked at."""
    rule_id: str | None = None
    """The rule that was set or removed; absent when there was none."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""
