"""A command that the model runs gets at no key of the kernel's keyrings."""

from __future__ import annotations

import platform
import shutil
import sys

import pytest

from tests.blackbox.work.workbench import Workbench, call, outputs
from tests.unit.system.test_syscalls import CALL, NUMBERS, USER


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in NUMBERS or shutil.which("bwrap") is None,
    reason="bubblewrap, or the numbers of system calls, are not there",
)
def test_a_command_is_refused_every_call(bench: Workbench) -> None:
    add, request, control = NUMBERS[platform.machine()]
    calls = [
        f"{add}, b'user', b'x', b'y', 1, {USER}",
        f"{request}, b'user', b'x', 0, {USER}",
        f"{control}, 10, {USER}, b'user', b'x', 0",
        f"{control}, 6, {USER}, 0, 0",
        f"{control}, 11, {USER}, 0, 0",
    ]
    for place, words in enumerate(calls):
        (bench.project / f"k{place}.py").write_text(CALL.format(words))
    steps = [call("run_command", command=f"python3 k{place}.py") for place in range(len(calls))]
    sidecar = bench.start([*steps, "done"], mode="auto")
    said = outputs(sidecar, sidecar.run("go", chatId="c")["sessionId"])
    if "in the sandbox" not in said[0]:
        pytest.skip("bubblewrap does not work here")
    assert [text.partition("\n")[0] for text in said] == ["-1 1"] * len(calls)
