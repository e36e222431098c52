"""Seals what the model thought, as providers do, so that a client must send it back unchanged.

The secret is fixed: chats outlive a fake, and what one process sealed the next must know again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

_SECRET = b"sidecar fake provider"
_MAC = 12


def seal(text: str) -> str:
    body = text.encode()
    return base64.b64encode(_mac(body) + body).decode()


def unseal(sealed: str) -> str | None:
    """The text that was sealed; None when the fake never gave out this seal."""
    try:
        raw = base64.b64decode(sealed, validate=True)
        text = raw[_MAC:].decode()
    except (binascii.Error, ValueError):
        return None
    return text if hmac.compare_digest(raw[:_MAC], _mac(raw[_MAC:])) else None


def _mac(body: bytes) -> bytes:
    return hmac.new(_SECRET, body, hashlib.sha256).digest()[:_MAC]
