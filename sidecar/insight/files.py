"""The files of the page, read once: a request names one of them exactly, or gets nothing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PAGES = ("chats", "knowledge", "rules", "patches", "tools", "agents", "doctor")
"""The first part of the addresses that the page itself resolves."""

_FOLDER = Path(__file__).with_name("pages")
_ASSETS = "/assets/"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    content_type: str
    body: bytes


def read_assets() -> dict[str, Asset]:
    """Return every file by the path of its address."""
    return {
        _ASSETS + file.relative_to(_FOLDER).as_posix(): Asset(_TYPES[file.suffix], file.read_bytes())
        for file in sorted(_FOLDER.rglob("*"))
        if file.suffix in _TYPES
    }


def find_asset(assets: dict[str, Asset], path: str) -> Asset | None:
    if path == "/" or path.split("/")[1] in PAGES:
        return assets[_ASSETS + "index.html"]
    return assets.get(path)
