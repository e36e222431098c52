"""The SQL condition for refused prompts in `turns`. `model/refusals` has the same rule for values."""

from __future__ import annotations

from ...model.refusals import ANSWERS, REFUSING_REASONS, REFUSING_STATUSES

_REASONS = ", ".join(f"'{reason}'" for reason in REFUSING_REASONS)
_ANSWERS = ", ".join(f"'{type}'" for type in ANSWERS)
_EVENTS = "'message.started', 'message.completed', 'tool.started', 'tool.ended'"
_STATUSES = ", ".join(map(str, REFUSING_STATUSES))


def sent_condition(turn: str) -> str:
    """Return the condition that a row of `turns`, under this alias, may be sent to a model as history.

    Only failed and declined turns are checked further: their errors are JSON, and the journal shows whether
    the model had answered anything. No part may be NULL, as the reason of a running turn is: its row would be
    lost.
    """
    name, reason, status = (
        f"coalesce(json_extract(CAST({turn}.error AS TEXT), '$.data.{path}'), '')"
        for path in ("name", "reason", "params.status")
    )
    return (
        f"NOT ((coalesce({turn}.reason, '') = 'refusal' OR ({turn}.status = 'failed' AND ({name} = 'context_budget'"
        f" OR ({name} = 'provider_error' AND ({reason} IN ({_REASONS})"
        f" OR ({reason} = 'bad_reply' AND {status} IN ({_STATUSES})))))))"
        f" AND NOT EXISTS (SELECT 1 FROM events answer WHERE answer.chat = {turn}.chat"
        f" AND answer.seq BETWEEN {turn}.first_seq AND {turn}.last_seq AND answer.turn = {turn}.id"
        f" AND answer.type IN ({_EVENTS}) AND json_extract(CAST(answer.data AS TEXT), '$.item.type') IN ({_ANSWERS})))"
    )
