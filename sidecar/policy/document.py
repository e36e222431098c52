"""Write docs/denials.md from the table of codes: `python -m sidecar.policy.document`."""

from __future__ import annotations

from pathlib import Path

from .denials import CODES, DenialSort

PAGE = Path(__file__).parents[2] / "docs" / "denials.md"

_HEAD = """# Denials and redirects

<!-- Generated from sidecar/policy/denials.py by `python -m sidecar.policy.document`. -->

Everything that is denied or redirected has a code. You find it in `notRun.code` of a tool call's
item, with `message`, `by` (who denied it) and `instead` (the tool to use); in `code` of
`permission.resolved`; in `data.params.code` of a refused prompt's error; and in `params.code` of a
notice. Codes do not change; new versions may add some.
"""

_TITLES: dict[DenialSort, str] = {
    "denial": "## Denials\n\nThe call was not run. A repeat is denied again unless something changes.",
    "redirect": "## Redirects\n\nThe call was answered once with the name of a better tool. "
    "The same call made again\nruns unchanged. Each rule has a key in [`[routing]`](configuration.md).",
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
