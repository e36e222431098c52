"""The process in which a rule's Python handler runs: `entry_point.py NAME`, with the standard library alone.

It finds the entry point NAME of the group `sidecar.rules`, calls it with the prompt, the paths and the project from
the JSON on stdin, and writes the returned text to stdout. What the handler prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys

GROUP = "sidecar.rules"


def main() -> None:
    from importlib.metadata import entry_points

    output = os.dup(1)
    os.dup2(2, 1)
    given = json.load(sys.stdin.buffer)
    name = sys.argv[1]
    found = entry_points(group=GROUP, name=name)
    if not found:
        sys.exit(f"no installed package has an entry point `{name}` of the group `{GROUP}`")
    text = next(iter(found)).load()(given["prompt"], given["paths"], given["project"])
    if not isinstance(text, str):
        sys.exit(f"`{name}` must return text, and returned {type(text).__name__}")
    with open(output, "wb") as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
