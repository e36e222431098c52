"""Loading a model of this machine tells how far it is, and can be cancelled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.spawner import Spawner
from tests.unit.local import stub
from tests.unit.local.conftest import MakeGguf, make_gguf  # noqa: F401


def test_the_speed_of_an_answer_is_stored_and_listed(
    spawn: Spawner,
    tmp_path: Path,
    make_gguf: MakeGguf,  # noqa: F811
) -> None:
    folder = spawn.data_dir / "models"
    folder.mkdir(parents=True)
    make_gguf("mine").rename(folder / "mine.gguf")
    sidecar = spawn(model="local:mine", env=_library(tmp_path))

    sidecar.run("words " * 20, chatId="c")

    environment = {**os.environ, "SIDECAR_DATA_DIR": str(spawn.data_dir)}
    listed = subprocess.run(
        [sys.executable, "-m", "sidecar", "models"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = (line for line in listed.stdout.splitlines() if line.startswith("local:mine"))
    assert line.endswith(" 42 tokens/s")


def _library(folder: Path) -> dict[str, str]:
    """The variables with which the worker finds the stub in place of xllamacpp."""
    (folder / "library").mkdir()
    shutil.copy(stub.__file__, folder / "library" / "xllamacpp.py")
    return {"PYTHONPATH": str(folder / "library")}


def test_loading_a_model_tells_its_progress_and_ends_by_a_cancel(
    spawn: Spawner,
    tmp_path: Path,
    make_gguf: MakeGguf,  # noqa: F811
) -> None:
    model = f"local:{make_gguf('holds', size=1000)}"
    sidecar = spawn(model=model, env=_library(tmp_path))

    sent = sidecar.say("Hello", chatId="c")
    sidecar.wait_frame(lambda frame: frame.get("params", {}).get("type") == "progress")
    progress = sidecar.statuses("progress")[0]["data"]
    sidecar.notify("$/cancelRequest", id=progress["operationId"])
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]

    assert (progress["kind"], progress["done"] <= progress["total"]) == ("load", True)
    assert (ended["reason"], "cancelled" in ended["error"]["message"]) == ("error", True)
