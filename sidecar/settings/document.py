"""Write the table of keys into docs/configuration.md: `python -m sidecar.settings.document [FILE]`.

Knows the markers of the page and nothing of its text.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .key import SettingKey
from .keys import KEYS
from .known import NAMED_TABLES

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
BEGIN = "<!-- keys: written by `python -m sidecar.settings.document` -->\n"
END = "<!-- end of keys -->\n"
_REACH = {"any": "yes", "trusted": "once trusted", "never": "no"}


def update_tables(page: str) -> str:
    """Return the page with the current tables."""
    page = _put(page, BEGIN, table(), END)
    for name in NAMED_TABLES:
        page = _put(page, BEGIN.replace("keys", name), named_table(name), END.replace("keys", name))
    return page


def table() -> str:
    rows = [_row(key) for key in KEYS.values()]
    return (
        "\n| key | default | value | in a project's file | meaning |\n|---|---|---|---|---|\n"
        + "".join(rows)
        + "\n"
    )


def named_table(name: str) -> str:
    """Return the keys of the tables `[NAME.…]`."""
    fields = NAMED_TABLES[name].fields.values()
    rows = [f"| `{f.name}` | {_default(f)} | {f.expected} | {f.doc} |\n" for f in fields]
    return "\n| key | default | value | meaning |\n|---|---|---|---|\n" + "".join(rows) + "\n"


def main(path: Path) -> None:
    path.write_text(update_tables(path.read_text("utf-8")), "utf-8")


def _put(page: str, begin: str, text: str, end: str) -> str:
    if begin not in page:
        return page
    before, _, rest = page.partition(begin)
    return before + begin + text + end + rest.partition(end)[2]


def _row(key: SettingKey) -> str:
    reach = _REACH[key.project] if key.files else "no file at all"
    doc = f"{key.doc} Variable: `{key.environment}`." if key.environment else key.doc
    return f"| `{key.name}` | {_default(key)} | {key.expected} | {reach} | {doc} |\n"


def _default(key: SettingKey) -> str:
    default = key.default
    if default is None:
        return key.shown or "none"
    if isinstance(default, bool | str):
        return f'`"{default}"`' if isinstance(default, str) else f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`{list(default)}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
