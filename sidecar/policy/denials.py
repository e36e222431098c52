"""Why a call, a prompt or a compaction was denied or redirected: the codes, their meaning, and the remedy.

One table. Denials for the model and the app have a code of it; docs/denials.md is generated from it
(`python -m sidecar.policy.document`). A redirect names a better tool, and the same call made again runs.
"""

from __future__ import annotations

from typing import Literal

import msgspec

DenialSort = Literal["denial", "redirect"]


class DenialCode(msgspec.Struct, frozen=True):
    """`does` says what happened; `remedy` says what the user or the model can do."""

    sort: DenialSort
    does: str
    remedy: str


CODES: dict[str, DenialCode] = {
    "rule_denied": DenialCode(
        "denial",
        "A permission rule denies it.",
        "Remove the rule (`permissionRules/remove`), or change it in its settings file.",
    ),
    "read_only": DenialCode(
        "denial",
        "The chat is read-only: edits, commands and fetches are denied.",
        "Choose another `mode` for the chat.",
    ),
    "user_denied": DenialCode("denial", "The user denied it.", "Follow the user's feedback."),
    "nobody_answered": DenialCode(
        "denial",
        "The user did not answer in time.",
        "Ask again later, or set `permissions.expiry` higher.",
    ),
    "cannot_ask": DenialCode(
        "denial",
        "It needs the user's permission, and the app cannot ask for it.",
        "Offer `capabilities.permissions` in `initialize`, or add a rule that allows it.",
    ),
    "hook_denied": DenialCode(
        "denial",
        "A hook denied the call before the tool ran.",
        "Follow the hook's message; `hooks/list` names its file.",
    ),
    "hook_stopped": DenialCode(
        "denial", "A hook ended the turn.", "Read its reason; send another prompt to continue."
    ),
    "prompt_blocked": DenialCode(
        "denial",
        "A hook refused the prompt: nothing was sent to a model, and the prompt is hidden.",
        "Change the prompt, or the hook.",
    ),
    "compaction_blocked": DenialCode(
        "denial",
        "A hook refused an automatic compaction. Nothing was changed.",
        "Compact by hand (`chat/compact`), or change the hook.",
    ),
    "route_big_read": DenialCode(
        "redirect",
        "The call would read a whole file larger than `routing.big_reads_bytes`.",
        "`index_path` and `search_context`, or a range of lines.",
    ),
    "route_fetch": DenialCode(
        "redirect", "The command would fetch a whole page into the context window.", "`fetch_url`."
    ),
    "route_listing": DenialCode(
        "redirect", "The command would list without a limit.", "`glob`, `run_batch`, or a limit."
    ),
    "route_noisy": DenialCode(
        "redirect",
        "A test runner, build or install has much output.",
        "`run_batch` with `queries`, or a quiet option.",
    ),
}


def denial(code: str, message: str, by: str = "", instead: str = "") -> dict[str, str]:
    """A denial as it is stored: a code, a message, who denied it, and the tool to use instead."""
    assert code in CODES, code
    made = {"code": code, "message": message, "by": by, "instead": instead}
    return {name: value for name, value in made.items() if value}
