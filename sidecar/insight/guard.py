"""Decides which HTTP requests get an answer: Host, Origin, the one-time token and the cookie. Does no IO."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

ENTRY = "/enter/"
"""The path of the one address that is printed: the token follows it."""

# No `%`: every id that a page's address has is written with these letters.
_PATH = re.compile(r"/(?:[A-Za-z0-9_:~-][A-Za-z0-9._:~-]*(?:/[A-Za-z0-9_:~-][A-Za-z0-9._:~-]*)*/?)?")


class Guard:
    """The secrets of one server. The token is good for one exchange; the cookie until the server ends."""

    def __init__(self, port: int) -> None:
        self._host = f"127.0.0.1:{port}"
        self._origin = f"http://{self._host}"
        # Browsers send a host's cookies to all of its ports.
        self._name = f"sidecar_insight_{port}"
        self._cookie = secrets.token_urlsafe(32)
        self._token: str | None = secrets.token_urlsafe(32)
        self.address = f"{self._origin}{ENTRY}{self._token}"

    def is_ours(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        """Whether the request is addressed to this server, by a page of this server or by no page."""
        if headers.get("host") != self._host or not _PATH.fullmatch(path):
            return False
        origin = headers.get("origin")
        if origin != self._origin and (origin is not None or method != "GET"):
            return False
        # An address that the user opens is "none", but a link in the desktop app may be "cross-site".
        site = headers.get("sec-fetch-site", "none")
        return site in ("none", "same-origin") or (path.startswith(ENTRY) and method == "GET")

    def exchange(self, path: str) -> str | None:
        """Return the `Set-Cookie` header for a path with the token; None for any other. The token ends with it."""
        given = path.removeprefix(ENTRY)
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return None
        self._token = None
        return f"{self._name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"

    def is_known(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the cookie."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())
