"""The contract in other forms, made from the table: the OpenRPC document and the reference page.

`python -m sidecar_protocol.export` writes the files beside the package; a test fails when they are stale. The
sidecar imports `openrpc` from here when it is asked for it, and only then. Needs msgspec and nothing else.
"""

from .document import openrpc

__all__ = ["openrpc"]
