"""Writes the table of keys into docs/configuration.md: `python -m sidecar.settings.document [FILE]`.

Knows the page's markers and nothing of its prose.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .keys import KEYS, Key
from .providers import FIELDS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
BEGIN = "<!-- keys: written by `python -m sidecar.settings.document` -->\n"
END = "<!-- end of keys -->\n"
PROVIDERS_BEGIN = "<!-- providers: written by `python -m sidecar.settings.document` -->\n"
PROVIDERS_END = "<!-- end of providers -->\n"
_REACH = {"any": "yes", "trusted": "once trusted", "never": "no"}


def renewed(page: str) -> str:
    """The page with the tables as they are now."""
    page = _put(page, BEGIN, table(), END)
    return _put(page, PROVIDERS_BEGIN, providers_table(), PROVIDERS_END)


def table() -> str:
    rows = [_row(key) for key in KEYS.values()]
    return (
        "\n| key | default | value | in a project's file | |\n|---|---|---|---|---|\n" + "".join(rows) + "\n"
    )


def providers_table() -> str:
    rows = [f"| `{f.name}` | {_default(f)} | {f.expected} | {f.doc} |\n" for f in FIELDS.values()]
    return "\n| key | default | value | |\n|---|---|---|---|\n" + "".join(rows) + "\n"


def main(path: Path) -> None:
    path.write_text(renewed(path.read_text("utf-8")), "utf-8")


def _put(page: str, begin: str, text: str, end: str) -> str:
    if begin not in page:
        return page
    before, _, rest = page.partition(begin)
    return before + begin + text + end + rest.partition(end)[2]


def _row(key: Key) -> str:
    reach = _REACH[key.project] if key.files else "no file at all"
    doc = f"{key.doc} Variable: `{key.environment}`." if key.environment else key.doc
    return f"| `{key.name}` | {_default(key)} | {key.expected} | {reach} | {doc} |\n"


def _default(key: Key) -> str:
    if key.default is None:
        return key.shown or "none"
    return f'`"{key.default}"`' if isinstance(key.default, str) else f"`{key.default:g}`"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
