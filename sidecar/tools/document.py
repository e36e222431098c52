"""Write the arguments of the built-in tools into docs/tools.md: `python -m sidecar.tools.document [FILE]`.

Knows the markers of the page and nothing of its text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ..model import JsonObject
from .builtin import builtin_tools
from .web.fetch_url import FetchUrl

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
BEGIN = "<!-- arguments: written by `python -m sidecar.tools.document` -->\n"
END = "<!-- end of arguments -->\n"


def update_page(page: str) -> str:
    """Return the page with the current arguments."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + arguments() + END + rest.partition(END)[2]


def arguments() -> str:
    """Return a table of all arguments: a row each, those of arrays and objects too."""
    specs = [tool.spec for tool in builtin_tools("off")] + [FetchUrl.spec]
    rows = [row for spec in specs for row in _rows(spec.name, spec.input_schema, "")]
    head = "\n| tool | argument | type | | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def _rows(tool: str, schema: JsonObject, within: str) -> Iterator[tuple[str, ...]]:
    properties = _object(schema.get("properties"))
    if not properties and not within:
        yield f"`{tool}`", "none", "", "", ""
    required_names = _list(schema.get("required"))
    for name, argument in ((name, _object(argument)) for name, argument in properties.items()):
        full = f"{within}{name}"
        required = "required" if name in required_names else ""
        yield (
            f"`{tool}`",
            f"`{full}`",
            _type(tool, name, argument),
            required,
            _meaning(f"{tool}.{full}", argument),
        )
        inner = _object(argument.get("items", argument))
        if inner.get("properties"):
            yield from _rows(tool, inner, f"{full}[]." if "items" in argument else f"{full}.")


def _type(tool: str, name: str, argument: JsonObject) -> str:
    if (tool, name) == ("run_code", "language"):
        return "an installed language"  # the list is that of the machine
    if "enum" in argument:
        return ", ".join(f"`{value}`" for value in _list(argument["enum"]))
    if argument.get("type") == "array":
        return f"array of {_type(tool, name, _object(argument.get('items')))}"
    bounds = [f"{word} {argument[key]}" for key, word in _BOUNDS.items() if key in argument]
    return ", ".join([str(argument.get("type", "any")), *bounds])


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


_MEANINGS = {
    "search_context.queries": "What to search for; each gets its own hits.",
    "get_output.id": "The reference `out:…`, or a hit of a search.",
    "get_output.start_line": "The first line, from 1.",
    "get_output.end_line": "The last line, included.",
    "index_path.path": "The file or folder, relative to the project.",
    "grep.ignore_case": "Whether upper and lower case are the same.",
    "run_code.language": "What the code is written in.",
    "run_code.code": "The program.",
    "run_batch.commands": "The commands, at most 20.",
    "run_batch.commands[].label": "What the output of this command is called.",
    "run_batch.commands[].command": "The command line.",
    "run_batch.queries": "What to find in long outputs.",
    "update_plan.plan": "All steps of the plan, in order.",
    "update_plan.plan[].step": "What is to be done.",
    "update_plan.plan[].status": "How far it is.",
    "ask_user.question": "The question.",
    "ask_user.choices": "Answers to choose from.",
    "fetch_url.url": "The address, http or https.",
}
"""Of arguments that explain themselves to a model: their words would be sent with every request."""

_BOUNDS = {"minimum": "from", "maximum": "to"}


def _meaning(name: str, argument: JsonObject) -> str:
    text = str(argument.get("description") or _MEANINGS[name])
    return " ".join(text.split()).replace("|", "\\|")


def main(path: Path) -> None:
    path.write_text(update_page(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
