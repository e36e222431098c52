"""Boot ids: which are of one boot, which are not, and which prove nothing."""

from __future__ import annotations

import os
import sys

import pytest

from sidecar.system import processes
from sidecar.system.processes import ProcessIdentity, estimated_boot_id, is_same_boot

UUID = "0f1c6c2e-6f0b-4d0e-9b0a-1f6f6f1d7a11"
NOON = 1_790_000_000.0
HOUR = 3600_000

SAME: dict[str, tuple[str, str, bool | None]] = {
    "one boot session": (UUID, UUID, True),
    "another boot session": (UUID, UUID.upper(), False),
    "an older sidecar that knew none": ("", UUID, None),
    "a system that has none": ("", "", None),
    "an estimate by a clock that drifts": (
        estimated_boot_id(NOON, HOUR),
        estimated_boot_id(NOON + 7200.4, HOUR + 7_200_000),
        True,
    ),
    "an estimate after a reboot, or after the clock was set": (
        estimated_boot_id(NOON, HOUR),
        estimated_boot_id(NOON + 600, 20_000),
        None,
    ),
    "an estimate beside a boot session": (estimated_boot_id(NOON, HOUR), UUID, False),
}


@pytest.mark.parametrize("case", SAME)
def test_two_boot_ids_are_compared_as_far_as_they_prove_something(case: str) -> None:
    one, other, same = SAME[case]
    assert (is_same_boot(one, other), is_same_boot(other, one)) == (same, same)


@pytest.mark.parametrize(("boot", "alive"), [(UUID, True), ("another", False), ("", None)])
def test_a_process_of_another_boot_is_gone_though_its_pid_runs(
    monkeypatch: pytest.MonkeyPatch, boot: str, alive: bool | None
) -> None:
    monkeypatch.setattr(processes, "boot_id", lambda: UUID)
    mine = processes.current_process()
    assert processes.is_alive(ProcessIdentity(boot, mine.namespace, os.getpid(), mine.started)) is alive


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="other systems only estimate it")
def test_this_machine_has_a_boot_id_that_stays() -> None:
    processes.boot_id.cache_clear()
    first = processes.boot_id()
    processes.boot_id.cache_clear()
    assert first
    assert first == processes.boot_id()


def test_a_system_that_names_no_boot_has_an_empty_id(monkeypatch: pytest.MonkeyPatch) -> None:
    processes.boot_id.cache_clear()
    monkeypatch.setattr(sys, "platform", "sunos5")
    try:
        assert processes.boot_id() == ""
    finally:
        processes.boot_id.cache_clear()
