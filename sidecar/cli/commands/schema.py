"""`sidecar schema`: print the protocol, as a document or as the types of a language."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from sidecar_protocol.export.event_examples import kept_event_examples
from sidecar_protocol.export.examples import examples
from sidecar_protocol.export.languages import LANGUAGES, contract, json_schema
from sidecar_protocol.export.reference import single_page

from ..client import run


def print_schema(options: Namespace) -> int:
    sys.stdout.write(_text(options))
    return 0


def _text(options: Namespace) -> str:
    if options.form == "openrpc":
        return _json(run(options, lambda app: app.call("rpc.discover")))
    if options.form == "json-schema":
        return _json(json_schema())
    if options.form == "markdown":
        return single_page(examples(), kept_event_examples())
    _, write = LANGUAGES[options.form]
    return write(contract())


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
