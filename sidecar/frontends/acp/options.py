"""What an editor lets its user choose for a session: the mode, the model, and how much it thinks.

The list of models needs the providers, which may be far away: until it is known, the chosen model is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model import JsonObject
from ...model.chats import EffectiveConfig, Mode, OwnConfig
from ...model.failures import invalid_param
from ...providers.base import ModelEntry
from ...providers.registry import AUTO
from ...system.choices import MODES
from .messages import AcpResult

MODE, MODEL, EFFORT = "mode", "model", "effort"

DEFAULT_EFFORT = "default"
"""The effort of a session for which none was chosen."""

MAX_MODELS = 500
"""A provider of many vendors lists hundreds; a menu of more helps nobody."""

_MODE_WORDS: Mapping[str, tuple[str, str]] = {
    "ask": ("Ask", "Asks before it changes files, runs commands or fetches pages."),
    "accept-edits": ("Accept edits", "Changes files of the project without asking; asks about the rest."),
    "read-only": ("Read only", "Reads and answers; changes and runs nothing."),
    "auto": ("Auto", "Asks about nothing that no rule stops."),
}

assert set(_MODE_WORDS) == set(MODES)


def modes(config: EffectiveConfig) -> AcpResult:
    """The modes of version 1."""
    listed = [
        {"id": id, "name": name, "description": description}
        for id, (name, description) in _MODE_WORDS.items()
    ]
    return {"currentModeId": config.mode, "availableModes": listed}


def options(version: int, config: EffectiveConfig, models: Sequence[ModelEntry]) -> list[JsonObject]:
    """All that can be chosen, with what is chosen now."""
    found = [
        _select(
            version,
            MODE,
            "Mode",
            "mode",
            config.mode,
            [(id, name, description) for id, (name, description) in _MODE_WORDS.items()],
        ),
        _select(version, MODEL, "Model", "model", config.model, _model_choices(config, models)),
    ]
    efforts = _efforts(config, models)
    if efforts or config.effort:
        chosen = config.effort or DEFAULT_EFFORT
        values = dict.fromkeys([DEFAULT_EFFORT, *efforts, chosen])
        choices: list[Choice] = [(value, value.capitalize(), None) for value in values]
        found.append(_select(version, EFFORT, "Effort", "thought_level", chosen, choices))
    return found


def change(offered: Sequence[JsonObject], id: str, value: object) -> OwnConfig:
    """The change of the configuration that a choice stands for; raises when there is no such choice."""
    if not isinstance(value, str):
        raise invalid_param("value", "a text: one of the values of the option")
    if id == MODE:
        return {"mode": checked_mode(value, "value")}
    if id == MODEL:
        return {"model": value}  # also one that is not listed: the list of a provider may be incomplete
    if id == EFFORT:
        known = _values_of(offered, EFFORT)
        if value not in known:
            expected = f"one of {', '.join(known)}" if known else "nothing: this model has no efforts"
            raise invalid_param("value", expected)
        return {"effort": None if value == DEFAULT_EFFORT else value}
    raise invalid_param("configId", f"one of {MODE}, {MODEL}, {EFFORT}")


def _values_of(offered: Sequence[JsonObject], id: str) -> list[str]:
    named = (option for option in offered if id in (option.get("id"), option.get("configId")))
    return [choice["value"] for option in named for choice in _choices(option)]


def _choices(option: JsonObject) -> list[dict[str, str]]:
    choices = option["options"]
    return choices if isinstance(choices, list) else []


def checked_mode(mode: str, field: str) -> Mode:
    if mode not in MODES:
        raise invalid_param(field, f"one of {', '.join(MODES)}")
    return mode


Choice = tuple[str, str, str | None]
"""A value, its name, and what it means."""


def _model_choices(config: EffectiveConfig, models: Sequence[ModelEntry]) -> list[Choice]:
    choices: dict[str, Choice] = {AUTO: (AUTO, "Automatic", "The first model that is set up.")}
    for entry in models[:MAX_MODELS]:
        if entry.available:
            choices[entry.id] = (entry.id, entry.name, entry.provider)
    choices.setdefault(config.model, (config.model, config.model, None))
    return list(choices.values())


def _efforts(config: EffectiveConfig, models: Sequence[ModelEntry]) -> Sequence[str]:
    return next((entry.efforts or () for entry in models if entry.id == config.model), ())


def _select(
    version: int, id: str, name: str, category: str, current: str, choices: Sequence[Choice]
) -> JsonObject:
    listed = [
        {"value": value, "name": shown, **({"description": meaning} if meaning else {})}
        for value, shown, meaning in choices
    ]
    key = "id" if version == 1 else "configId"
    return {
        key: id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": listed,
    }
