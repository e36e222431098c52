"""Start-up: what reading settings may import. Each runs in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = {
    "typing",
    "re",
    "dataclasses",
    "collections",
    "tomllib",
    "tomlkit",
    "platformdirs",
    "difflib",
    "hashlib",
}

PROGRAM = """
import sys
from sidecar import settings
{then}
print(*sorted({heavy!r} & set(sys.modules)))
"""

PLACES = """
settings.files.user_file = lambda: {folder!r} + "/config.toml"
settings.files.default_data_dir = lambda: {folder!r}
settings.load(environ={{"SIDECAR_MODEL": "echo:"}}, project={folder!r})
"""


def imported(then: str) -> list[str]:
    program = PROGRAM.format(then=then, heavy=HEAVY)
    # -S: the environment's own .pth files import what they like.
    run = [sys.executable, "-S", "-c", program]
    return subprocess.run(
        run, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3]
    ).stdout.split()


def test_importing_the_settings_imports_nothing_heavy() -> None:
    assert imported("") == []


def test_loading_without_files_imports_nothing_heavy(tmp_path: Path) -> None:
    assert imported(PLACES.format(folder=str(tmp_path))) == []


def test_the_folders_are_platformdirs() -> None:
    import platformdirs

    from sidecar.settings import user_file
    from sidecar.settings.files import default_data_dir

    config, data = (
        platformdirs.user_config_path("sidecar", False),
        platformdirs.user_data_path("sidecar", False),
    )
    assert (Path(user_file()), Path(default_data_dir())) == (config / "config.toml", data)
