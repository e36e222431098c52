"""Writes docs/denials.md from the table of codes: `python -m sidecar.policy.document`."""

from __future__ import annotations

from pathlib import Path

from .denials import CODES, Sort

PAGE = Path(__file__).parents[2] / "docs" / "denials.md"

_HEAD = """# Why something did not go ahead

<!-- Made by `python -m sidecar.policy.document` from sidecar/policy/denials.py. Do not edit. -->

What is denied or shown another way carries a code. A call's item has it in `notRun.code` with `message`, `by` (who
said so) and `instead` (the tool to use); `permission.resolved` has it in `code`; a refused prompt's error in
`data.params.code`; a notice in `params.code`. Codes stay what they are; new ones may come.
"""

_TITLES: dict[Sort, str] = {
    "denial": "## Denials\n\nIt was not done, and the same again will be denied again unless something changes.",
    "redirect": "## Redirects\n\nThe call was answered with a better way, once. The same call made again runs as it is."
    "\nEach rule is switched by its key in [`[routing]`](configuration.md).",
}


def page() -> str:
    parts = [_HEAD]
    for sort, title in _TITLES.items():
        rows = [
            f"| `{code}` | {row.does} | {row.remedy} |" for code, row in CODES.items() if row.sort == sort
        ]
        parts.append(
            "\n".join([title, "", "| code | what happened | what to do |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
