"""`sidecar fake-provider`: serve the fake provider until it is stopped. Knows nothing of its responses."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace

import anyio

from sidecar.fake_provider import DEFAULT_MODELS, FAULTS, FakeProvider, Model, Recorded

from ..errors import CommandFailed


def fake_provider(options: Namespace) -> int:
    if options.list_faults:
        width = max(map(len, FAULTS))
        for fault in FAULTS.values():
            print(f"{fault.name:<{width}}  {fault.about}{' (harmless)' if fault.harmless else ''}")
        return 0
    models = [_model(each) for each in options.model] if options.model else DEFAULT_MODELS
    fake = FakeProvider(
        host=options.host,
        port=options.port,
        key=options.key,
        models=models,
        prefix=options.prefix,
        style=options.style,
    )
    try:
        anyio.run(_serve, fake, options.quiet)
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}"
        ) from error
    return 0


async def _serve(fake: FakeProvider, quiet: bool) -> None:
    """Serve until SIGINT or SIGTERM. Running responses are cut off: it is a fake."""
    async with fake:
        fake.on_request = None if quiet else _log
        if sys.platform == "win32":
            _announce(fake)
            await anyio.sleep_forever()  # Ctrl-C arrives as KeyboardInterrupt
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            _announce(fake)
            async for _ in signals:
                return


def _announce(fake: FakeProvider) -> None:
    print(" ".join([fake.url, *(f"{name}={value}" for name, value in fake.env.items())]), flush=True)


def _log(request: Recorded) -> None:
    what = f" [{request.fault}]" if request.fault else f" {request.rule}" if request.rule else ""
    status = request.status or "no answer"
    print(f"{request.method} {request.path} -> {status}{what}", file=sys.stderr, flush=True)


def _model(text: str) -> Model:
    """`NAME` or `NAME=WINDOW`."""
    name, _, window = text.partition("=")
    try:
        return Model(name, window=int(window)) if window else Model(name)
    except ValueError:
        raise CommandFailed(f"--model {text}: the window must be a number of tokens") from None
