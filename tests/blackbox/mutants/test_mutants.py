"""Each mutant is caught by tests that the program itself passes: a suite that lets one live proves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.blackbox.faults import disks, tracing
from tests.blackbox.mutants.patching import Mutant, run, source

ALL = bool(os.environ.get("SIDECAR_MUTANTS"))
"""`make mutants` tries every one, and first that the tests pass without them."""

STORE, CHAT = "sidecar/store", "sidecar/chat"
GUARANTEES, FAULTS = "tests/blackbox/guarantees", "tests/blackbox/faults"

MUTANTS = [
    Mutant(
        "removes a whole chat in one transaction",
        "sidecar/store/engine/slices.py",
        "        done = await db.write(lambda db: _run_slice(db, change, pace), last=last, yields=True)\n",
        (
            "        return await db.write("
            "lambda db: list(iter(lambda: change(db, pace.most), None)), last=last)\n"
            "        done = None\n"
        ),
        f"{GUARANTEES}/test_long_operations.py -k write_lock",
    ),
    Mutant(
        "forgets a deletion that was interrupted",
        f"{CHAT}/actions/housekeeping.py",
        "    unfinished = await chats.store.retention.resume_removal()\n",
        "    unfinished = 0\n",
        f"{GUARANTEES}/test_long_operations.py -k next_start",
    ),
    Mutant(
        "takes an image that does not decode",
        "sidecar/media/__init__.py",
        "        return inspect_image(data)\n",
        '        return Facts("image/png", 1, 1)\n',
        f"{GUARANTEES}/test_media.py tests/blackbox/models/test_media.py",
    ),
    Mutant(
        "sends a refused prompt again",
        "sidecar/store/tables/turns.py",
        "        f\" AND {refusals.sent_condition('t')} ORDER BY ordinal DESC LIMIT ?\",\n",
        '        " ORDER BY ordinal DESC LIMIT ?",\n',
        "tests/blackbox/models/test_refused.py -k not_sent_again",
    ),
    Mutant(
        "gives up when the provider refuses an image",
        "sidecar/chat/request/next_step.py",
        ("        if shown:\n            return await self._without_media(request, shown)\n"),
        "",
        "tests/blackbox/models/test_media.py -k without_images",
    ),
    Mutant(
        "says that what was refused can be retried",
        "sidecar/model/failures.py",
        '    return "choose_model" if usual == "retry" else usual\n',
        '    return "retry"\n',
        "tests/unit/providers/test_error_data.py",
    ),
    Mutant(
        "sends tool output without a fence",
        "sidecar/engines/results.py",
        "    if denied or name in USER_TEXT_TOOLS:\n",
        "    if True:\n",
        "tests/unit/context/test_tool_results.py",
    ),
    Mutant(
        "takes the wishes of an untrusted project for instructions",
        "sidecar/chat/request/instructions.py",
        "    if environment.is_project_trusted():\n",
        "    if True:\n",
        "tests/blackbox/hostile/test_untrusted_projects.py -k fence",
    ),
    Mutant(
        "lets an untrusted project choose the model",
        "sidecar/settings/key.py",
        "UNTRUSTED_KEYS = {\n",
        'UNTRUSTED_KEYS = {\n    "model": "",\n',
        "tests/blackbox/hostile/test_untrusted_projects.py -k chooses",
    ),
    Mutant(
        "lets disguised commands run in auto",
        "sidecar/policy/decide.py",
        '    reason = reason if hook or mode in ("auto", HOST_ASKED) else None\n',
        "    reason = reason if hook or mode == HOST_ASKED else None\n",
        "tests/unit/policy/test_auto.py -k disguise",
    ),
    Mutant(
        "takes every program for a known one",
        "sidecar/policy/programs.py",
        "    if name not in READ_ONLY_PROGRAMS and name not in PLAIN_PROGRAMS:\n",
        "    if False:\n",
        "tests/unit/policy/test_auto.py -k another_program",
    ),
    Mutant(
        "takes an extraction for a plain command",
        "sidecar/policy/programs.py",
        (
            "    if name not in _COPIES and (extracted := unseen_writes_reason(argv)):\n"
            "        return extracted\n"
        ),
        "",
        "tests/unit/policy/test_auto.py -k extraction",
    ),
    Mutant(
        "acknowledges before the commit",
        "sidecar/store/engine/transactions.py",
        (
            "        outcomes = [_attempt(pending.job, db) for pending in batch]\n"
            '        db.execute("COMMIT")\n'
        ),
        "        outcomes = [_attempt(pending.job, db) for pending in batch]\n",
        f"{GUARANTEES}/test_durability.py tests/unit/store/test_database.py",
    ),
    Mutant(
        "acknowledges now, and commits with what comes next",
        "sidecar/store/engine/transactions.py",
        (
            "    _begin(db)\n"
            "    try:\n"
            "        _check_shape(db, shape)\n"
            "        outcomes = [_attempt(pending.job, db) for pending in batch]\n"
            '        db.execute("COMMIT")\n'
        ),
        (
            "    if db.in_transaction:\n"
            '        db.execute("COMMIT")\n'
            "    _begin(db)\n"
            "    try:\n"
            "        outcomes = [_attempt(pending.job, db) for pending in batch]\n"
        ),
        "tests/blackbox/crash",
    ),
    Mutant(
        "leaves a file open at the end of each turn",
        "sidecar/chat/sessions/session.py",
        "        turn.ending = True\n",
        (
            "        turn.ending = True\n"
            "        logging.left = [*getattr(logging, 'left', []), open('/dev/null')]\n"
        ),
        "tests/blackbox/models/test_endurance.py",
    ),
    Mutant(
        "does not roll back",
        "sidecar/store/engine/transactions.py",
        ('                db.execute("ROLLBACK")\n        raise\n    return outcomes\n'),
        ("                pass\n        raise\n    return outcomes\n"),
        "tests/unit/store/test_database.py",
    ),
    Mutant(
        "deletes the log at start",
        "sidecar/store/lifecycle.py",
        "            opening.prepare_file(Path(self.data_dir))\n",
        (
            "            opening.prepare_file(Path(self.data_dir))\n"
            "            Path(path + '-wal').unlink(missing_ok=True)\n"
        ),
        f"{GUARANTEES}/test_durability.py",
    ),
    Mutant(
        "ignores the lease",
        "sidecar/store/tables/leases.py",
        "    return lease.owner if alive and is_running(lease, now) else None\n",
        "    return None\n",
        f"{GUARANTEES}/test_processes.py",
    ),
    Mutant(
        "drops deltas under pressure",
        "sidecar/chat/journal/recorder.py",
        "        run.add(text, size)\n",
        ("        if len(batch.entries) < 2 and batch.size < 64:\n            run.add(text, size)\n"),
        f"{GUARANTEES}/test_turns.py {GUARANTEES}/test_slow_reader.py",
    ),
    Mutant(
        "forgets deltas that the disk did not take",
        "sidecar/chat/journal/recorder.py",
        (
            "            self._unwritten = unwritten + [\n"
            "                event for position, event in enumerate(new_events) if position not in batch.awaited\n"
            "            ]\n"
        ),
        "            self._unwritten = []\n",
        f"{FAULTS}/test_system_calls.py -k once",
        needs_strace=True,
    ),
    Mutant(
        "swallows a broken pipe",
        "sidecar/rpc/stdio.py",
        (
            "            if not self._write(data):\n"
            "                self._mark_broken()\n"
            "                return\n"
        ),
        ("            if not self._write(data):\n                continue\n"),
        f"{GUARANTEES}/test_lifecycle.py -k goes_away",
    ),
    Mutant(
        "lets a cancelled request undo a change",
        "sidecar/frontends/native/prompts.py",
        (
            "        with anyio.CancelScope(shield=True):\n"
            "            blocks = await _stored_content(chats, params)\n"
            "            session = await chats.session_for_prompt"
        ),
        (
            "        with anyio.CancelScope():\n"
            "            blocks = await _stored_content(chats, params)\n"
            "            session = await chats.session_for_prompt"
        ),
        f"{GUARANTEES}/test_connection.py -k cancelled_request",
    ),
    Mutant(
        "never gives the reserve up",
        "sidecar/store/engine/transactions.py",
        "            reserve.release()\n",
        "            pass\n",
        f"{FAULTS}/test_small_disks.py -k full_disk",
        needs_root=True,
    ),
    Mutant(
        "begins turns once the reserve is given up",
        "sidecar/store/engine/transactions.py",
        "    if reserve.ensure():\n",
        "    if reserve.ensure() or True:\n",
        "tests/unit/store/test_database.py -k reserve",
    ),
    Mutant(
        "does not notice that the database was replaced",
        "sidecar/store/engine/file_watch.py",
        "            if inode_of(os.stat(self._path)) != self._inode:\n",
        "            if False:\n",
        f"{FAULTS}/test_lost_files.py tests/unit/store/test_file_watch.py -k renamed_over",
    ),
    Mutant(
        "does not notice that the database was removed",
        "sidecar/store/engine/file_watch.py",
        '            return Loss("removed", self._path)\n',
        "            return None\n",
        f"{FAULTS}/test_lost_files.py -k put_back",
    ),
    Mutant(
        "reads no key a second time",
        "sidecar/store/repair/recovery.py",
        "    for chat, *key in source.keys(keys):\n",
        "    for chat, *key in ():\n",
        f"{FAULTS}/test_damage_together.py -k destroyed",
    ),
    Mutant(
        "repairs without asking the others for the database",
        "sidecar/store/lifecycle.py",
        "            if file_lock.repair_is_wanted(db.path) and not self._repairing:\n",
        "            if False:\n",
        f"{FAULTS}/test_damage_together.py -k closes_the_database",
    ),
    Mutant(
        "never asks a disk again",
        "sidecar/store/engine/database.py",
        '        while self.state != "ready" and not self.is_closing:\n',
        "        while False:\n",
        f"{FAULTS}/test_small_disks.py -k readonly_disk",
        needs_root=True,
    ),
    Mutant(
        "empties the log where it commits",
        "sidecar/store/engine/database.py",
        "        return await checkpointer.call(checkpoint_log)\n",
        "        return await self.run_on_writer(checkpoint_log)\n",
        f"{FAULTS}/test_system_calls.py -k hangs",
        needs_strace=True,
    ),
    Mutant(
        "reads no more when memory is short",
        "protocol/sidecar_protocol/framing.py",
        ("            self._skip_frame()\n            self._buffer += data\n"),
        "            raise\n",
        f"{FAULTS}/test_memory.py -k skipped",
    ),
    Mutant(
        "moves a database that another holds",
        "sidecar/store/engine/file_lock.py",
        "    while not (_lock(fd, exclusive=True) and not _in_use(path)):\n",
        "    while False:\n",
        f"{FAULTS}/test_damage.py tests/blackbox/cli/test_database.py -k holds_is_not_moved",
    ),
    Mutant(
        "restores over a database in use",
        "sidecar/store/maintenance.py",
        '        raise Refused("locked", f"{path} is in use: end every sidecar that has it open, then try again")\n',
        "        hold = holding.Hold(None)\n",
        "tests/blackbox/cli/test_database.py -k in_use",
    ),
    Mutant(
        "does not compare checksums",
        "sidecar/store/tables/journal.py",
        "    if sum is not None and sum != checksums.event_checksum(",
        "    if sum is False and sum != checksums.event_checksum(",
        f"{FAULTS}/test_damage.py -k altered_letter",
    ),
    Mutant(
        "deletes the damaged database",
        "sidecar/store/repair/recovery.py",
        "            os.rename(path + suffix, aside + suffix)\n",
        "            os.unlink(path + suffix)\n",
        f"{FAULTS}/test_damage.py -k altered_letter",
    ),
    Mutant(
        "saves only what SQLite can still read",
        "sidecar/store/repair/recovery.py",
        "        db.executemany(insert, source.raw_events())\n",
        "        pass\n",
        f"{FAULTS}/test_damage.py -k page_of_garbage",
    ),
    Mutant(
        "puts an empty database in the place of a damaged one",
        "sidecar/store/repair/recovery.py",
        "    if not chats_saved and not empty:\n",
        "    if False:\n",
        f"{GUARANTEES}/test_storage.py -k never_replaced",
    ),
    Mutant(
        "leaves the turn of a dead owner open",
        "sidecar/store/tables/leases.py",
        ("    if left_open and not other_holder(lease, me, now, is_alive):\n        raise UnclosedChat()\n"),
        "",
        f"{GUARANTEES}/test_recovery.py {GUARANTEES}/test_processes.py",
    ),
    Mutant(
        "migrates without a backup",
        "sidecar/store/tables/migrations.py",
        "        _back_up(db, path, version)\n",
        "",
        "tests/unit/store/test_opening.py -k backed_up",
    ),
    Mutant(
        "opens its own database by another name",
        "sidecar/system/safe_open.py",
        ("    if own_files.is_own(found):\n        raise own_file_refusal()\n"),
        "",
        f"{GUARANTEES}/test_named_paths.py -k read",
    ),
    Mutant(
        "knows its own database by its path alone",
        "sidecar/system/own_files.py",
        "    return (found.st_dev, found.st_ino) in own_inodes()\n",
        "    return False\n",
        f"{GUARANTEES}/test_named_paths.py -k our_own",
    ),
    Mutant(
        "writes an export into the file that is there",
        "sidecar/system/files.py",
        '        temp = f".sidecar-{os.urandom(8).hex()}.tmp"\n',
        (
            '        temp = f".sidecar-{os.urandom(8).hex()}.tmp"\n'
            "        if old is not None:\n"
            "            fd = os.open(self._name, os.O_WRONLY | os.O_TRUNC, dir_fd=self._folder)\n"
            "            write_all(fd, data)\n"
            "            os.close(fd)\n"
            "            return\n"
        ),
        f"{GUARANTEES}/test_named_paths.py -k when_asked",
    ),
    Mutant(
        "replaces a file unasked",
        "sidecar/chat/services/named_files.py",
        "        write_whole(path, data, overwrite=overwrite)\n",
        "        write_whole(path, data, overwrite=True)\n",
        f"{GUARANTEES}/test_named_paths.py -k when_asked",
    ),
    Mutant(
        "follows a link in an export's place",
        "sidecar/system/files.py",
        ("        if stat.S_ISLNK(found.st_mode):\n            self._check_link()\n"),
        ("        if stat.S_ISLNK(found.st_mode):\n            return None\n"),
        f"{GUARANTEES}/test_named_paths.py -k link_in",
    ),
    Mutant(
        "imports in one commit",
        "sidecar/chat/actions/import_slices.py",
        "            if len(events) >= most or size >= SLICE_BYTES:\n",
        "            if False:\n",
        f"tests/unit/chat/test_importing.py {GUARANTEES}/test_import_bounds.py -k slice",
    ),
    Mutant(
        "does not look how deep a line is nested",
        "sidecar/chat/actions/import_lines.py",
        "    check_depth(line)\n",
        "",
        "tests/unit/chat/test_import_lines.py -k nested",
    ),
    Mutant(
        "keeps a chat locked after a reboot",
        "sidecar/store/tables/leases.py",
        "    return now < lease.expires <= now + LEASE_MS\n",
        "    return now < lease.expires\n",
        "tests/unit/store/test_leases.py",
    ),
]

IN_CI = {
    "forgets a deletion that was interrupted",
    "lets disguised commands run in auto",
    "takes the wishes of an untrusted project for instructions",
    "sends a refused prompt again",
    "begins turns once the reserve is given up",
    "does not notice that the database was replaced",
    "reads no key a second time",
    "opens its own database by another name",
    "writes an export into the file that is there",
    "replaces a file unasked",
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
