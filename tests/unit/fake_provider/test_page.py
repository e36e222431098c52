"""docs/fake-provider.md names every fault, marker and option, and its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sidecar.cli.parser import build_parser
from sidecar.fake_provider import FAULTS
from sidecar.fake_provider.markers import reply_to
from sidecar.fake_provider.values import DEFAULT_MODELS
from tests.support.patience import PATIENCE_S

PAGE = (Path(__file__).parents[3] / "docs" / "fake-provider.md").read_text("utf-8")


def test_every_fault_is_on_the_page_with_its_line() -> None:
    rows = re.findall(r"^\| `([a-z0-9_]+)` \| (.*?)( \*\(harmless\)\*)? \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert [(name, about, bool(harmless)) for name, about, harmless in rows] == [
        (fault.name, fault.about, fault.harmless) for fault in FAULTS.values()
    ]


def test_every_marker_on_the_page_is_understood() -> None:
    markers = re.findall(r"^\| `(\[\[.*?\]\])` \|", PAGE, re.MULTILINE)
    assert len(markers) == 12
    quoted = [marker for marker in markers if "[[" in "".join(reply_to(marker, [], 0).text)]
    assert quoted == []


def test_every_option_and_model_is_on_the_page() -> None:
    options = build_parser().parse_args(["fake-provider"])
    names = {name for name in vars(options) if name != "run"}
    assert {name for name in names if f"| `--{name.replace('_', '-')}" not in PAGE} == set()
    assert [model.id for model in DEFAULT_MODELS if f"`{model.id}`" not in PAGE] == []


def test_the_example_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert re.fullmatch(r"(http://127\.0\.0\.1:\d+) \1/v1\n\[\]\n", ran.stdout)
