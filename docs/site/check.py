"""Opens every page of the built site in Chromium, wide and as on a phone, and looks for what is wrong.

Wrong are: a link or an image within the site that leads nowhere, a heading that a link names and that is not there,
anything that is loaded from elsewhere, a message of an error in the console, and a page wider than a phone. The search
is used once. `make test-docs` runs it; with `--screenshots DIR` it also writes some pages as PNG.

It speaks Chromium's own protocol over a pipe, so it needs no driver and no package.
"""

from __future__ import annotations

import argparse
import base64
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parents[2] / "dist" / "docs"
WIDE, PHONE = (1280, 900), (390, 844)
SHOWN = (
    "index.html",
    "docs/supervision.html",
    "docs/embed.html",
    "protocol/index.html",
    "protocol/reference/events.html",
    "ARCHITECTURE.html",
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
MAX_WAIT_S = 60


class Chromium:
    """A page in a browser, driven over a pipe: messages are JSON that ends with a zero byte."""

    def __init__(self, folder: str) -> None:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        if program is None:
            sys.exit("needs Chromium: apt-get install chromium")
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4, whatever else is open.
        command = f'exec "$0" "$@" 3<&{read} 4>&{write}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(read, write),
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._unread = b""
        self._sent = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.terminate()
        self._process.wait(MAX_WAIT_S)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            got = self._next()
            if got.get("id") == self._sent:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return dict(got["result"])
            self.events.append(got)

    def open(self, url: str, size: tuple[int, int]) -> list[dict[str, Any]]:
        """Load a page and return the events until it has loaded."""
        self.resize(size)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        return list(self.events)

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=size == PHONE,
        )  # fmt: skip

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript, a promise too."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return result["result"].get("value")

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                sys.exit("Chromium has ended")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(line))


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            if value and name == "id":
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """The links within the site that lead nowhere."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {link} leads nowhere"
        for path, page in pages.items()
        if path.name != "404.html"  # its links are from the root of a server
        for link in dict.fromkeys(page.links)
        if not _leads_somewhere(path, link, pages)
    ]


def _leads_somewhere(path: Path, link: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    anchor = unquote(parts.fragment)
    if not anchor or anchor.startswith("__") or target not in pages:
        return target.exists()
    return anchor in pages[target].anchors


def problems_of(events: list[dict[str, Any]], address: str) -> list[str]:
    """Errors in the console, and requests that did not stay on the site."""
    found = []
    for event in events:
        method, params = event["method"], event["params"]
        if method == "Runtime.exceptionThrown":
            found.append(f"exception: {params['exceptionDetails'].get('text')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            found.append(f"console: {[each.get('value') for each in params['args']]}")
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            found.append(f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith((address, "data:", "blob:")):
                found.append(f"asks another host: {url}")
    return found


def check_search(browser: Chromium, address: str) -> list[str]:
    """Type a word into the search and wait for its first hit."""
    browser.open(f"{address}/index.html", WIDE)
    hit = browser.value(
        """new Promise(resolve => {
          const input = document.querySelector(".md-search__input");
          input.focus(); input.value = "promptId"; input.dispatchEvent(new Event("input"));
          input.dispatchEvent(new KeyboardEvent("keyup"));
          const end = Date.now() + 20000;
          (function look() {
            const found = document.querySelector(".md-search-result__link");
            if (found || Date.now() > end) resolve(found ? found.href : "");
            else setTimeout(look, 100);
          })();
        })"""
    )
    return [] if hit else ["index.html: the search finds nothing"]


def check(site: Path, screenshots: Path | None) -> list[str]:
    found = broken_links(site)
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    pages = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Chromium(folder) as browser:
        if screenshots:
            _photograph(browser, address, screenshots)
        found += check_search(browser, address)
        for number, page in enumerate(pages, 1):
            seen = problems_of(browser.open(f"{address}/{page}", WIDE), address)
            for size in (WIDE, PHONE):
                browser.resize(size)
                overflow = browser.value("document.documentElement.scrollWidth - window.innerWidth")
                if overflow > 0:
                    seen.append(f"{overflow} pixels wider than {size[0]}")
            for problem in seen:
                found.append(f"{page}: {problem}")
                print(found[-1], file=sys.stderr, flush=True)
            if number % 20 == 0:
                print(f"{number} of {len(pages)} pages", file=sys.stderr, flush=True)
    server.shutdown()
    print(f"{len(pages)} pages opened at {WIDE[0]} and {PHONE[0]} pixels", file=sys.stderr)
    return found


def _photograph(browser: Chromium, address: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        browser.call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        for page in SHOWN:
            for size in (WIDE, PHONE):
                browser.open(f"{address}/{page}", size)
                name = page.removesuffix(".html").replace("/", "-")
                browser.screenshot(folder / f"{name}-{size[0]}-{scheme}.png")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-docs", description=__doc__)
    parser.add_argument("--site", type=Path, default=SITE, help="the built site (default: dist/docs)")
    parser.add_argument("--screenshots", type=Path, metavar="DIR", help="write some pages as PNG")
    arguments = parser.parse_args()
    if not (arguments.site / "index.html").exists():
        sys.exit("there is no site yet: `make docs` builds it")
    found = check(arguments.site, arguments.screenshots)
    print("\n".join(found) or "nothing is wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
