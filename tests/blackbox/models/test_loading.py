"""Loading a model of this machine tells how far it is, and can be cancelled."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.spawner import Spawner
from tests.unit.local import stub
from tests.unit.local.conftest import MakeGguf, make_gguf  # noqa: F401


def test_loading_a_model_tells_its_progress_and_ends_by_a_cancel(
    spawn: Spawner,
    tmp_path: Path,
    make_gguf: MakeGguf,  # noqa: F811
) -> None:
    (tmp_path / "library").mkdir()
    shutil.copy(stub.__file__, tmp_path / "library" / "xllamacpp.py")
    model = f"local:{make_gguf('holds', size=1000)}"
    sidecar = spawn(model=model, env={"PYTHONPATH": str(tmp_path / "library")})

    sent = sidecar.say("Hello", chatId="c")
    sidecar.wait_frame(lambda frame: frame.get("params", {}).get("type") == "progress")
    progress = sidecar.statuses("progress")[0]["data"]
    sidecar.notify("$/cancelRequest", id=progress["operationId"])
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]

    assert (progress["kind"], progress["done"] <= progress["total"]) == ("load", True)
    assert (ended["reason"], "cancelled" in ended["error"]["message"]) == ("error", True)
