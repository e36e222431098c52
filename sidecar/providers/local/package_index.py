"""Where a wheel can be downloaded: the package indexes that pip is configured to use. Reads pages, never the wheel.

Only the public index is built in, and it is used when nothing else is configured, as with pip.
"""

from __future__ import annotations

import ast
import base64
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from ...system.helper_programs import is_frozen

PUBLIC_INDEX = "https://pypi.org/simple"

TIMEOUT_S = 30.0
"""For a connection, and between two pieces, unless a request says otherwise; not for the whole download."""

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""The page of a project has one line per file."""

PIP_S = 30.0
"""`pip config` only reads files."""


class IndexSources(NamedTuple):
    """What pip would search. `only_pip` is set when some of it is not an index on the web."""

    indexes: list[str]
    only_pip: bool = False
    certificates: str | None = None
    proxy: str | None = None


class IndexUnreachable(Exception):
    """An index or a file on it could not be fetched; `refused` when the server responded with an error."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


def find_index_sources() -> IndexSources:
    """Return the sources that pip uses: its files, overridden by PIP_ variables. `download` is the pip command whose
    section applies.
    """
    pip_settings = _pip_config()

    def value(key: str) -> str | None:
        sections = (":env:", "download", "global")
        return next(
            (pip_settings[f"{each}.{key}"] for each in sections if pip_settings.get(f"{each}.{key}")), None
        )

    given = [value("index-url") or PUBLIC_INDEX, *(value("extra-index-url") or "").split()]
    if (value("no-index") or "").lower() in ("1", "true", "yes", "on"):
        given = []
    web = [url for url in given if urlsplit(url).scheme in ("http", "https")]
    only_pip = len(web) < len(given) or not given or bool(value("find-links"))
    return IndexSources(web, only_pip, value("cert"), value("proxy"))


class IndexClient:
    """HTTP with the machine's proxies and certificates. Credentials in a URL are sent to its own host only."""

    def __init__(self, sources: IndexSources) -> None:
        handlers: list[Any] = [urllib.request.HTTPSHandler(context=_tls_context(sources.certificates))]
        if sources.proxy:
            handlers.append(urllib.request.ProxyHandler({"http": sources.proxy, "https": sources.proxy}))
        self._opener = urllib.request.build_opener(*handlers)

    def open(self, url: str, headers: dict[str, str] | None = None, timeout: float | None = None) -> Any:
        """Return the response; raise Unreachable when there is none."""
        bare, authorization = _split_credentials(url)
        request = urllib.request.Request(bare, headers={"User-Agent": "sidecar", **(headers or {})})
        if authorization:
            request.add_unredirected_header("Authorization", authorization)
        try:
            return self._opener.open(request, timeout=timeout or TIMEOUT_S)
        except urllib.error.HTTPError as error:
            error.close()
            raise IndexUnreachable(f"{bare}: HTTP {error.code} {error.reason}", refused=True) from error
        except urllib.error.URLError as error:
            raise IndexUnreachable(f"{bare}: {error.reason}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise IndexUnreachable(f"{bare}: {error or type(error).__name__}") from error

    def find(self, index: str, project: str, filename: str) -> str:
        """Return the URL of a file on the page of a project."""
        page = f"{index.rstrip('/')}/{project}/"
        with self.open(page, {"Accept": "text/html, application/vnd.pypi.simple.v1+html;q=0.9"}) as response:
            try:
                text = response.read(MAX_PAGE_BYTES).decode("utf-8", "replace")
            except (OSError, HTTPException) as error:
                raise IndexUnreachable(f"{without_credentials(page)}: {error}") from error
            base = response.geturl()
        links = _Links(base)
        links.feed(text)
        for url in links.found:
            if unquote(urlsplit(url).path.rpartition("/")[2]) == filename:
                return _with_credentials(url, page)
        raise IndexUnreachable(f"{without_credentials(page)}: {filename} is not there", refused=True)


def without_credentials(url: str) -> str:
    return _split_credentials(url)[0]


class _Links(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if tag == "base" and target:
            self._base = urljoin(self._base, target)
        if tag == "a" and target:
            url = urljoin(self._base, target).partition("#")[0]
            if urlsplit(url).scheme in ("http", "https"):
                self.found.append(url)


def _pip_config() -> dict[str, str]:
    """Return the output of `pip config list`; the variables alone when pip is missing."""
    found = {
        f":env:.{name[4:].lower().replace('_', '-')}": value
        for name, value in os.environ.items()
        if name.startswith("PIP_") and value
    }
    if is_frozen():
        return found
    try:
        asked = subprocess.run(
            [sys.executable, "-E", "-P", "-m", "pip", "config", "list"],
            capture_output=True,
            text=True,
            timeout=PIP_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return found
    for line in asked.stdout.splitlines() if asked.returncode == 0 else ():
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key, _literal(value))
    return found


def _literal(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return value


def _tls_context(certificates: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if certificates:
        try:
            context.load_verify_locations(certificates)
        except (OSError, ssl.SSLError) as error:
            raise IndexUnreachable(f"{certificates}: pip's `cert` cannot be read ({error})") from error
    return context


def _split_credentials(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    encoded = base64.b64encode(unquote(credentials).encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), f"Basic {encoded}"


def _with_credentials(url: str, page: str) -> str:
    """Use the credentials of the page for the file too, when it is on the same host."""
    own, other = urlsplit(url), urlsplit(page)
    credentials, at, host = other.netloc.rpartition("@")
    if at and (own.scheme, own.netloc) == (other.scheme, host):
        return urlunsplit(own._replace(netloc=f"{credentials}@{host}"))
    return url
