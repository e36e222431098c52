"""`sidecar providers`: list providers, test them, and set a key. The sidecar stores the keys."""

from __future__ import annotations

import sys
from argparse import Namespace
from getpass import getpass

from sidecar_client import Sidecar
from sidecar_protocol.messages import (
    ProviderInfo,
    ProvidersConfigureResult,
    ProvidersListResult,
    ProvidersTestResult,
)

from ..client import run
from ..errors import CommandFailed, error_object_message
from ..terminal.columns import print_columns

MAX_KEY_CHARACTERS = 8192
"""The sidecar's limit; a longer key is a file that was piped in by mistake."""


def show(options: Namespace) -> int:
    rows = [_row(each) for each in run(options, _all)]
    print_columns(("provider", "type", "key", "address", "state"), rows, wide=4)
    return 0


def test(options: Namespace) -> int:
    """Test one provider, or all that are ready; exit code 1 when one fails."""
    name: str | None = options.name

    async def ask(app: Sidecar) -> list[tuple[str, ProvidersTestResult]]:
        names = [name] if name else [each.name for each in await _all(app) if each.ready]
        return [(each, await app.call("providers/test", {"provider": each})) for each in names]

    found = run(options, ask)
    if not found:
        print("No provider has a key yet.\n  `sidecar providers` shows what each of them needs.")
    for provider, result in found:
        print(_verdict(provider, result))
    return 0 if all(result.ok for _, result in found) else 1


def set_key(options: Namespace) -> int:
    """Store a key in the keyring. It comes from the terminal or from stdin: other users can read a command line."""
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
    return error_object_message(result.error.message, result.error.data)


def _read_key(name: str) -> str:
    if sys.stdin.isatty():
        key = getpass(f"Key of {name} (it is not shown): ")
    else:
        key = sys.stdin.read(MAX_KEY_CHARACTERS + 2)
    if not key.strip():
        raise CommandFailed("There is no key on stdin; type it, or pipe it in.")
    return key.strip()
