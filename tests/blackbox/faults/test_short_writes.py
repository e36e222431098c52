"""A kernel that writes half of what it is asked to, again and again: what is kept and what a tool writes is whole."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.blackbox.faults.wholeness import assert_nothing_lost, sound
from tests.blackbox.work.workbench import Workbench, call, statuses
from tests.support.spawner import Spawner

SOURCE = Path(__file__).with_name("short_writes.c")
TEXT = "".join(f"line {number} of what the model writes\n" for number in range(4000))


@functools.cache
def compiled(folder: Path) -> Path:
    made = folder / "short_writes.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE), "-ldl"],
        check=True,
        capture_output=True,
    )
    return made


@pytest.mark.sampled(1)
@pytest.mark.skipif(not shutil.which("cc"), reason="cc is not installed")
@pytest.mark.parametrize("every", [1, 3])
def test_half_writes_leave_whole_files(spawn: Spawner, every: int) -> None:
    bench, log = Workbench(spawn), spawn.folder / "short.log"
    shim = {
        "LD_PRELOAD": str(compiled(spawn.folder)),
        "SHORT_EVERY": str(every),
        "SHORT_LOG": str(log),
    }
    reads = [call("read_file", path="notes.txt")]
    writes = [
        call("write_file", path="new.txt", content=TEXT),
        call("edit_file", path="notes.txt", old_string="second", new_string="2nd"),
    ]
    sidecar = bench.start([reads, writes, "done " * 2000], env=shim)
    ended = sidecar.run("work " * 20_000, chatId="c", projectPath=str(bench.project))
    assert (ended["data"]["reason"], statuses(sidecar, ended["sessionId"])) == ("end_turn", ["completed"] * 3)
    assert (bench.read("new.txt"), bench.read("notes.txt")) == (TEXT, "first\n2nd\nthird\n")
    assert log.stat().st_size > 20, "hardly any write was short: nothing was tested"
    sidecar.kill()
    after = spawn()
    assert_nothing_lost(sidecar, after)
    after.close_stdin()
    after.wait()
    assert sound(spawn.data_dir / "sidecar.db")
