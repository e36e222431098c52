"""`sidecar schema`: print the protocol as the sidecar itself describes it."""

from __future__ import annotations

import json
from argparse import Namespace

from ..client import run


def print_schema(options: Namespace) -> int:
    print(json.dumps(run(options, lambda app: app.call("rpc.discover")), indent=2, ensure_ascii=False))
    return 0
