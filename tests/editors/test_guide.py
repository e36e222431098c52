"""The scripts of docs/editors.md, run as they are written by the Neovim and the Emacs of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.spawner import Spawner

GUIDE = Path(__file__).parents[2] / "docs" / "editors.md"

EDITORS = {
    "nvim": ("lua", "acp.lua", ["nvim", "--headless", "-u", "NONE", "-c", "luafile acp.lua"], "Neovim"),
    "emacs": ("elisp", "acp.el", ["emacs", "-Q", "--batch", "-l", "acp.el"], "Emacs"),
}


@pytest.mark.parametrize("name", EDITORS)
def test_the_script_of_the_guide_runs_as_written(tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    language, file, command, said = EDITORS[name]
    found = re.search(rf"```{language}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / file).write_text(found[1])
    assert " ".join(command).replace("luafile acp.lua", '"luafile acp.lua"') in GUIDE.read_text("utf-8")
    environment = Spawner(tmp_path).environment()
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.stdout == f"Hello from {said}\nend_turn\n", done.stderr
