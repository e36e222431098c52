"""Session ids as any client computes them from section 2; the sidecar's own code plays no part."""

from __future__ import annotations

import hashlib
import re


def session_id(key: str, kind: str = "chat", namespace: str = "default") -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:40].strip("-") or "chat"
    digest = hashlib.sha256(f"{namespace}\0{kind}\0{key}".encode()).hexdigest()[:16]
    return f"sc-{slug}-{digest}"
