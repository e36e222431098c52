"""Files by which other agents and editors run programs: a change asks, and what a command creates is reported."""

from __future__ import annotations

import pytest

from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Workbench, call, outputs, statuses

FILES = (
    "opencode.json",
    ".qwen/settings.json",
    ".github/hooks/a.json",
    ".pi/extensions/a.ts",
    ".omp/hooks/pre/a.ts",
    ".kilo/plugins/a.js",
    ".codebuddy/settings.json",
    "docs/CODEBUDDY.md",
    ".helix/languages.toml",
    ".lazy.lua",
    ".Rprofile",
    ".pnp.cjs",
)


def test_no_edit_of_them_is_made_unasked(bench: Workbench) -> None:
    (bench.project / "editor").symlink_to(".helix")
    paths = [*FILES, "editor/config.toml"]
    steps = [call("write_file", path=path, content="x") for path in paths]
    sidecar = bench.start([*steps, "done"], mode="accept-edits")
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")
    assert statuses(sidecar, ended["sessionId"]) == ["denied"] * len(paths)
    assert len(sidecar.asked) == len(paths)
    assert sidecar.asked[-1]["params"]["subject"] == ".helix/config.toml"


@pytest.mark.parametrize("name", ["opencode.json", ".qwen", ".helix", ".lazy.lua", ".pnp.cjs"])
def test_a_command_that_creates_one_says_so(bench: Workbench, name: str) -> None:
    (bench.project / "make.py").write_text(f"open({name!r}, 'w')\n")
    sidecar = bench.start([call("run_command", command="python3 make.py"), "done"])
    ended = sidecar.run("go", chatId="c")
    assert f"it created {name}" in outputs(sidecar, ended["sessionId"])[0]
