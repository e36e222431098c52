"""The doctor's check of the model: whether anybody can answer a prompt of a chat that chooses none itself."""

from __future__ import annotations

import anyio

from ..model.checks import Check
from ..model.failures import ProviderFailed
from ..providers.registry import ProviderRegistry
from ..text.suggest import did_you_mean

LIST_S = 3.0
"""How long the provider's list of models is waited for; a person waits for the whole report."""

CHOOSE = "Set `model` in the settings, or SIDECAR_MODEL: `sidecar models` lists what there is"


async def check_model(providers: ProviderRegistry, chosen: str | None) -> Check:
    """Check the model of the settings, or the one that is chosen automatically."""
    try:
        model = chosen or await providers.default()
    except ProviderFailed as failure:
        first, _, remedies = failure.message.partition("\n")
        return Check("model", "fail", "model_none", f"Nobody can answer. {first}", remedies or CHOOSE)
    if problem := providers.name_problem(model):
        return Check("model", "fail", "model_unknown", f"{model} is no model: expected {problem}", CHOOSE)
    if obstacle := await providers.obstacle(model):
        return Check("model", "fail", "model_unready", f"{model}: {obstacle}", CHOOSE)
    return await _check_listed(providers, model)


async def _check_listed(providers: ProviderRegistry, model: str) -> Check:
    """Check that the provider lists the model, as far as it answers."""
    provider, name = providers.resolve(model)
    # A model in a file is read by the list that follows, as it was asked for.
    provider.model_entry(name)
    try:
        with anyio.fail_after(LIST_S):
            listed = {entry.id: entry for entry in await provider.models()}
    except (ProviderFailed, TimeoutError) as error:
        why = (
            error.message if isinstance(error, ProviderFailed) else f"no list of models in {LIST_S:g} seconds"
        )
        return Check("model", "warn", "model_unreachable", f"{model}: {why}", "Check the network and the key")
    entry = listed.get(model) or provider.model_entry(name)
    if not entry.available:
        remedy = (
            f"Run `sidecar models fetch {name}`" if entry.provider == "local" and model in listed else CHOOSE
        )
        said = f"{model}: its file is missing or cannot be used"
        return Check("model", "fail", "model_unknown", said, remedy)
    # Some providers list no aliases of their models, so this is no more than a warning.
    if listed and model not in listed and entry.provider != "local":
        near = did_you_mean(model, listed)
        meant = f"; did you mean {near[0]}?" if near else ""
        said = f"{model} is not among the models that its provider lists ({len(listed)}){meant}"
        return Check("model", "warn", "model_unlisted", said, CHOOSE)
    return Check("model", "ok", "model", model)
