"""`sidecar providers`: who can answer, whether they do, and a key for one of them. The keys are the sidecar's."""

from __future__ import annotations

import sys
from argparse import Namespace

from sidecar_client import Sidecar
from sidecar_protocol.messages import (
    ProviderInfo,
    ProvidersConfigureResult,
    ProvidersListResult,
    ProvidersTestResult,
)

from .client import run
from .columns import print_columns
from .errors import Failed, explain_object

MAX_KEY_CHARACTERS = 8192
"""As long as the sidecar takes one; what is longer is a file that was piped in by mistake."""


def show(options: Namespace) -> int:
    rows = [_row(each) for each in run(options, _all)]
    print_columns(("provider", "type", "key", "address", "state"), rows, wide=4)
    return 0


def test(options: Namespace) -> int:
    """Ask one provider, or all that could answer; exit code 1 when one does not."""
    name: str | None = options.name

    async def ask(app: Sidecar) -> list[tuple[str, ProvidersTestResult]]:
        names = [name] if name else [each.name for each in await _all(app) if each.ready]
        return [(each, await app.call("providers/test", {"provider": each})) for each in names]

    found = run(options, ask)
    if not found:
        print("No provider has a key yet.\n  `sidecar providers` tells what each of them wants.")
    for provider, result in found:
        print(_verdict(provider, result))
    return 0 if all(result.ok for _, result in found) else 1


def set_key(options: Namespace) -> int:
    """Keep a key in the keyring. It comes from the terminal or from stdin: a command line can be read by others."""
    key = _read_key(options.name)

    async def configure(app: Sidecar) -> ProvidersConfigureResult:
        params = {"provider": options.name, "apiKey": key, "store": "keyring"}
        info: ProvidersConfigureResult = await app.call("providers/configure", params)
        return info

    info = run(options, configure)
    print(f"The key of {info.name} is in the keyring.")
    if info.key_source != "keyring":
        print(f"  It is not in use: the key of the {info.key_source} goes before it.")
    return 0


async def _all(app: Sidecar) -> list[ProviderInfo]:
    found: ProvidersListResult = await app.call("providers/list", {})
    return found.items


def _row(each: ProviderInfo) -> tuple[str, ...]:
    key = f"{each.key_source} ({each.key_env})" if each.key_source == "environment" else each.key_source
    return (
        each.name,
        each.type,
        key or "none",
        each.base_url or "",
        "ready" if each.ready else each.reason or "",
    )


def _verdict(provider: str, result: ProvidersTestResult) -> str:
    if result.ok:
        return f"{provider}: ok, {result.models} model{'' if result.models == 1 else 's'}"
    assert result.error is not None
    return explain_object(result.error.message, result.error.data)


def _read_key(name: str) -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        key = getpass(f"Key of {name} (it is not shown): ")
    else:
        key = sys.stdin.read(MAX_KEY_CHARACTERS + 2)
    if not key.strip():
        raise Failed("There is no key on stdin; type it, or pipe it in.")
    return key.strip()
