"""Sign thoughts, as providers do, so that a client must send them back unchanged.

The secret is fixed: chats outlive a fake, and the next process must accept what this one signed.
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
    """Return the signed text; None when the fake never issued this signature."""
    try:
        raw = base64.b64decode(sealed, validate=True)
        text = raw[_MAC:].decode()
    except (binascii.Error, ValueError):
        return None
    return text if hmac.compare_digest(raw[:_MAC], _mac(raw[_MAC:])) else None


def _mac(body: bytes) -> bytes:
    return hmac.new(_SECRET, body, hashlib.sha256).digest()[:_MAC]
