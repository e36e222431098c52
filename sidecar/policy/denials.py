"""Why a call, a prompt or a compaction did not go ahead: the codes, what each means, and where to go instead.

One table. What the model and the app are told carries a code of it; docs/denials.md is made of it
(`python -m sidecar.policy.document`). A redirect is no denial: it says where to go, and the same call made again runs.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Sort = Literal["denial", "redirect"]


class Code(msgspec.Struct, frozen=True):
    """`does` says what happened; `remedy` what a person or the model can do."""

    sort: Sort
    does: str
    remedy: str


CODES: dict[str, Code] = {
    "rule_denied": Code(
        "denial",
        "A standing rule denies it.",
        "Take the rule back (`permissionRules/remove`), or change it in the settings file that has it.",
    ),
    "read_only": Code(
        "denial",
        "The chat is read-only: edits, commands and fetches do not run in it.",
        "Choose another `mode` for the chat.",
    ),
    "user_denied": Code("denial", "A person was asked and said no.", "Do what they said instead."),
    "nobody_answered": Code(
        "denial",
        "A person was asked and did not answer in time.",
        "Ask again later, or set `permissions.expiry` higher.",
    ),
    "cannot_ask": Code(
        "denial",
        "It needs a person's word, and the app cannot ask for it.",
        "Offer `capabilities.permissions` in `initialize`, or add a rule that allows it.",
    ),
    "hook_denied": Code(
        "denial",
        "A hook denied the call before the tool ran.",
        "Do what the hook says; `hooks/list` names its file.",
    ),
    "hook_stopped": Code(
        "denial", "A hook ended the turn.", "Read its reason; send another prompt to go on."
    ),
    "prompt_blocked": Code(
        "denial",
        "A hook refused the prompt: no model was asked, and the prompt has left the view.",
        "Change the prompt, or the hook.",
    ),
    "compaction_blocked": Code(
        "denial",
        "A hook refused an automatic compaction. Nothing was changed.",
        "Compact by hand (`chat/compact`), or change the hook.",
    ),
    "route_big_read": Code(
        "redirect",
        "A file larger than `routing.big_reads_bytes` was to be read whole.",
        "`index_path` and `search_context`, or a range of lines.",
    ),
    "route_fetch": Code(
        "redirect", "A page was to be fetched by a command, all of it into the window.", "`fetch_url`."
    ),
    "route_listing": Code(
        "redirect", "A command would list without a bound.", "`glob`, `run_batch`, or a limit."
    ),
    "route_noisy": Code(
        "redirect",
        "A test runner, build or install prints much.",
        "`run_batch` with `queries`; a quiet option runs at once.",
    ),
}


def denial(code: str, message: str, by: str = "", instead: str = "") -> dict[str, str]:
    """Why something did not go ahead, as it is journalled: a code, words, who said so, and where to go instead."""
    assert code in CODES, code
    made = {"code": code, "message": message, "by": by, "instead": instead}
    return {name: value for name, value in made.items() if value}
