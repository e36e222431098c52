"""`sidecar serve` when its options needed explaining: hands them to the door. Knows nothing of serving."""

from __future__ import annotations

from argparse import Namespace
from typing import NoReturn


def serve_options(options: Namespace) -> NoReturn:
    from sidecar.door import serve
    from sidecar.system.launch import ServeOptions

    given = {name: getattr(options, name, None) for name in ("data_dir", "config", "log_level", "chat_id")}
    serve(ServeOptions(framing=options.framing, **given))
