"""Each mutant is caught by tests that the program itself passes: a suite that lets one live proves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults import disks, tracing
from tests.mutants.patching import Mutant, run, source

ALL = bool(os.environ.get("SIDECAR_MUTANTS"))
"""`make mutants` tries every one, and first that the tests pass without them."""

STORE, CHAT = "sidecar/store", "sidecar/chat"
GUARANTEES, FAULTS = "tests/guarantees", "tests/faults"

MUTANTS = [
    Mutant(
        "acknowledges before the commit",
        f"{STORE}/database.py",
        '        outcomes = [_attempt(pending.job, db) for pending in batch]\n        db.execute("COMMIT")\n',
        "        outcomes = [_attempt(pending.job, db) for pending in batch]\n",
        f"{GUARANTEES}/test_durability.py tests/store/test_database.py",
    ),
    Mutant(
        "acknowledges now, and commits with what comes next",
        f"{STORE}/database.py",
        '    db.execute("BEGIN IMMEDIATE")\n    try:\n        _check_shape(db, shape)\n'
        '        outcomes = [_attempt(pending.job, db) for pending in batch]\n        db.execute("COMMIT")\n',
        '    if db.in_transaction:\n        db.execute("COMMIT")\n    db.execute("BEGIN IMMEDIATE")\n    try:\n'
        "        outcomes = [_attempt(pending.job, db) for pending in batch]\n",
        "tests/crash",
    ),
    Mutant(
        "leaves a file open at the end of each turn",
        f"{CHAT}/session.py",
        "        turn.ending = True\n",
        "        turn.ending = True\n        logging.left = [*getattr(logging, 'left', []), open('/dev/null')]\n",
        "tests/models/test_endurance.py",
    ),
    Mutant(
        "does not roll back",
        f"{STORE}/database.py",
        '                db.execute("ROLLBACK")\n        raise\n    return outcomes\n',
        "                pass\n        raise\n    return outcomes\n",
        "tests/store/test_database.py",
    ),
    Mutant(
        "deletes the log at start",
        f"{STORE}/kept.py",
        "            opening.prepare_file(Path(self.data_dir))\n",
        "            opening.prepare_file(Path(self.data_dir))\n"
        "            Path(path + '-wal').unlink(missing_ok=True)\n",
        f"{GUARANTEES}/test_durability.py",
    ),
    Mutant(
        "ignores the lease",
        f"{STORE}/leases.py",
        "    return lease.owner if alive and lease.expires > now else None\n",
        "    return None\n",
        f"{GUARANTEES}/test_processes.py",
    ),
    Mutant(
        "drops deltas under pressure",
        f"{CHAT}/recorder.py",
        "        run.add(text, size)\n",
        "        if len(batch.entries) < 2 and batch.size < 64:\n            run.add(text, size)\n",
        f"{GUARANTEES}/test_turns.py {GUARANTEES}/test_slow_reader.py",
    ),
    Mutant(
        "forgets deltas that the disk did not take",
        f"{CHAT}/recorder.py",
        "            self._unkept = unkept + [event for place, event in enumerate(made) if place not in batch.told]\n",
        "            self._unkept = []\n",
        f"{FAULTS}/test_system_calls.py -k once",
        needs_strace=True,
    ),
    Mutant(
        "swallows a broken pipe",
        "sidecar/rpc/stdio.py",
        "            if not self._write(data):\n                self._break()\n                return\n",
        "            if not self._write(data):\n                continue\n",
        f"{GUARANTEES}/test_lifecycle.py -k goes_away",
    ),
    Mutant(
        "lets a cancelled request undo a change",
        "sidecar/faces/native/prompts.py",
        "        with anyio.CancelScope(shield=True):\n            blocks = await _content(chats, params)\n",
        "        with anyio.CancelScope():\n            blocks = await _content(chats, params)\n",
        f"{GUARANTEES}/test_connection.py -k cancelled_request",
    ),
    Mutant(
        "never gives the reserve up",
        f"{STORE}/database.py",
        "            reserve.give_up()\n",
        "            pass\n",
        f"{FAULTS}/test_small_disks.py -k full_disk",
        needs_root=True,
    ),
    Mutant(
        "never asks a disk again",
        f"{STORE}/database.py",
        '        while self.state != "ready" and not self.is_closing:\n',
        "        while False:\n",
        f"{FAULTS}/test_small_disks.py -k readonly_disk",
        needs_root=True,
    ),
    Mutant(
        "empties the log where it commits",
        f"{STORE}/database.py",
        "        free = await self._keeper.call(_empty_log)\n",
        "        free = await self.exclusively(_empty_log)\n",
        f"{FAULTS}/test_system_calls.py -k hangs",
        needs_strace=True,
    ),
    Mutant(
        "reads no more when memory is short",
        "protocol/sidecar_protocol/framing.py",
        "            self._skip_frame()\n            self._buffer += data\n",
        "            raise\n",
        f"{FAULTS}/test_memory.py -k skipped",
    ),
    Mutant(
        "moves a database that another holds",
        f"{STORE}/holding.py",
        "    if _lock(fd, alone=True) and not _in_use(path):\n",
        "    if True:\n",
        f"{FAULTS}/test_damage.py tests/cli/test_keeping.py -k holds_is_not_moved",
    ),
    Mutant(
        "restores over a database in use",
        f"{STORE}/upkeep.py",
        '        raise Refused("locked", f"{path} is in use: end every sidecar that has it open, then try again")\n',
        "        hold = holding.Hold(None)\n",
        "tests/cli/test_keeping.py -k in_use",
    ),
    Mutant(
        "does not compare checksums",
        f"{STORE}/journal.py",
        "    if sum is not None and sum != checksums.of_event(",
        "    if sum is False and sum != checksums.of_event(",
        f"{FAULTS}/test_damage.py -k altered_letter",
    ),
    Mutant(
        "deletes the damaged database",
        f"{STORE}/recovery.py",
        "            os.rename(path + suffix, aside + suffix)\n",
        "            os.unlink(path + suffix)\n",
        f"{FAULTS}/test_damage.py -k altered_letter",
    ),
    Mutant(
        "saves only what SQLite can still read",
        f"{STORE}/recovery.py",
        "        db.executemany(insert, source.raw_events())\n",
        "        pass\n",
        f"{FAULTS}/test_damage.py -k page_of_garbage",
    ),
    Mutant(
        "puts an empty database in the place of a damaged one",
        f"{STORE}/recovery.py",
        "    if not chats_saved and not empty:\n",
        "    if False:\n",
        f"{GUARANTEES}/test_storage.py -k never_replaced",
    ),
    Mutant(
        "leaves the turn of a dead owner open",
        f"{STORE}/leases.py",
        "    if left_open and not holder(lease, me, now, is_alive):\n        raise Unclosed()\n",
        "",
        f"{GUARANTEES}/test_recovery.py {GUARANTEES}/test_processes.py",
    ),
    Mutant(
        "migrates without a backup",
        f"{STORE}/opening.py",
        "        _back_up(db, path, version)\n",
        "",
        "tests/store/test_opening.py -k backed_up",
    ),
]

IN_CI = {
    "acknowledges before the commit",
    "acknowledges now, and commits with what comes next",
    "deletes the damaged database",
    "saves only what SQLite can still read",
    "migrates without a backup",
}


def chosen() -> list[Mutant]:
    return [mutant for mutant in MUTANTS if ALL or mutant.name in IN_CI]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", chosen(), ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(tmp_path: Path, mutant: Mutant) -> None:
    if mutant.needs_root and disks.unable():
        pytest.skip(disks.unable())
    if mutant.needs_strace and tracing.unable():
        pytest.skip(tracing.unable())
    caught = run(source(tmp_path, mutant), mutant.caught_by, tmp_path)
    assert caught.returncode == 1, f"{mutant.name} lives\n{caught.stdout[-2000:]}{caught.stderr[-1000:]}"
    assert "failed" in caught.stdout or "FAILED" in caught.stdout, caught.stdout[-1000:]


@pytest.mark.slow
@pytest.mark.skipif(not ALL, reason="make mutants; in a run of all tests they pass or fail by themselves")
@pytest.mark.parametrize("tests", sorted({mutant.caught_by for mutant in MUTANTS}))
def test_the_program_itself_passes(tmp_path: Path, tests: str) -> None:
    passed = run(source(tmp_path, None), tests, tmp_path)
    assert passed.returncode == 0, passed.stdout[-2000:]
