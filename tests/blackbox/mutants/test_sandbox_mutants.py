"""Mutants that show commands what they must not see, or let them plant what runs outside: each is caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.system import sandbox
from tests.blackbox.mutants.patching import Mutant, run, source
from tests.blackbox.mutants.test_mutants import ALL

SYSTEM, BOX = "tests/unit/system", "sidecar/system/sandbox.py"

PLANTED = "tests/blackbox/hostile/test_planted_programs.py"

MUTANTS = [
    Mutant(
        "starts programs that a command has planted",
        "sidecar/system/programs.py",
        "        found = None if is_writable(entry) else shutil.which(name, path=entry)\n"
        "        if found and os.path.isabs(found) and not is_writable(found):\n",
        "        found = shutil.which(name, path=entry)\n        if found and os.path.isabs(found):\n",
        f"{PLANTED} -k no_tool_starts",
    ),
    Mutant(
        "lets commands change the programs of hooks",
        "sidecar/chat/tool_calls/sandbox_bounds.py",
        "    return [*found, *programs.path_folders(outside.folders), *programs.writable_programs(words)]\n",
        "    return found\n",
        f"{PLANTED} -k hook_runs_no_program",
    ),
    Mutant(
        "loads libraries that a command has planted",
        "sidecar/tools/shell/runner.py",
        "        outside = own_environment(inside)\n",
        "        outside = inside\n",
        f"{PLANTED} -k library",
    ),
    Mutant(
        "lets edits change what runs outside of the sandbox",
        "sidecar/policy/decide.py",
        "        return found or _outside_reason(subject)\n",
        "        return found\n",
        f"{PLANTED} -k an_edit",
    ),
    Mutant(
        "knows no servers of a chat",
        "sidecar/chat/tool_calls/environment.py",
        "            servers=[*values.mcp_servers(), *(config.mcp_servers or ())],\n",
        "            servers=values.mcp_servers(),\n",
        f"{PLANTED} -k what_a_server_starts",
    ),
    Mutant(
        "asks a stopped sandbox to end and never kills it",
        "sidecar/system/supervisor.py",
        "            self._signal(descendants(os.getpid(), process_table()), signal.SIGKILL)\n            self._wait",
        "            self._signal(descendants(os.getpid(), process_table()), signal.SIGTERM)\n            self._wait",
        "tests/blackbox/hostile/test_stopped_sandbox.py -k killed",
    ),
    Mutant(
        "relies on a supervisor that a command has stopped",
        "sidecar/system/process_tree.py",
        "            if not self._keeper_is_done:\n",
        "            if False:\n",
        f"{SYSTEM}/test_stopped_sandbox.py",
    ),
    Mutant(
        "lets commands read the kernel's keyrings",
        "sidecar/system/sandbox.py",
        "            filtering = msgspec.structs.replace(box, syscalls=filter_path())\n",
        "            filtering = box\n",
        "tests/blackbox/hostile/test_keyrings.py",
    ),
    Mutant(
        "lets commands change the program itself",
        "sidecar/system/sandbox.py",
        "        read_only = [*view.read_only, *own_code.own_environment_in(folders)]\n",
        "        read_only = [*view.read_only]\n",
        "tests/blackbox/hostile/test_own_settings.py -k running_program",
    ),
    Mutant(
        "lets commands open sockets of any family",
        "sidecar/system/syscalls.py",
        "        *_first_argument_among(calls.socket, FAMILIES),\n",
        "",
        f"{SYSTEM}/test_syscalls.py",
    ),
    Mutant(
        "shows credentials beside toolchains",
        "sidecar/system/sandbox.py",
        "        secrets |= _stray(shown, view.readable, environ)\n",
        "",
        "tests/unit/system/test_homes.py -k toolchains_can_be_read",
    ),
    Mutant(
        "passes on any locale variable",
        "sidecar/system/environment.py",
        "(name in added or (name in ALLOWED and not _may_be_secret(value)))",
        '(name in added or ((name in ALLOWED or name[:3] == "LC_") and not _may_be_secret(value)))',
        "tests/unit/system/test_environment.py",
    ),
    Mutant(
        "passes every variable on",
        "sidecar/system/environment.py",
        "(name in added or (name in ALLOWED and not _may_be_secret(value)))",
        "not _may_be_secret(value)",
        f"{SYSTEM}/test_environment.py",
    ),
    Mutant(
        "passes secrets on under allowed names",
        "sidecar/system/environment.py",
        "    return bool(_SECRET.search(value))\n",
        "    return False\n",
        f"{SYSTEM}/test_environment.py",
    ),
    Mutant(
        "shows the home",
        "sidecar/system/sandbox.py",
        "        for path in sorted({*self.homes, *self._others, *around}):\n",
        "        for path in sorted({*self._others, *around}):\n",
        f"{SYSTEM}/test_homes.py -k no_credentials",
    ),
    Mutant(
        "shows other projects",
        "sidecar/system/sandbox.py",
        "        for path in sorted({*self.homes, *self._others, *around}):\n",
        "        for path in sorted({*self.homes, *around}):\n",
        f"{SYSTEM}/test_homes.py -k other_projects",
    ),
    Mutant(
        "copies the whole git configuration",
        "sidecar/system/gitconfig.py",
        "if name in _NAMES and not looks_secret(value)]",
        'if name.count(".") == 1]',
        f"{SYSTEM}/test_homes.py -k git_knows",
    ),
    Mutant(
        "leaves sockets open",
        "sidecar/system/sandbox.py",
        "        options += _flat(_cover(path) for path in plan.sockets())\n",
        "",
        f"{SYSTEM}/test_sockets.py",
    ),
    Mutant(
        "lets commands write settings of ours",
        "sidecar/system/trusted_files.py",
        'NAMES = (".sidecar", ".claude", ".mcp.json", ".cursor")\n',
        "NAMES: tuple[str, ...] = ()\n",
        "tests/blackbox/hostile/test_trust.py -k guarded_names",
    ),
    Mutant(
        "lets commands change the scripts of hooks",
        "sidecar/system/sandbox.py",
        "        options += _flat(_make_read_only(path, folders) for path in read_only)\n",
        "",
        "tests/blackbox/hostile/test_trust.py -k script_of_a_hook",
    ),
    Mutant(
        "removes mount points under another sandbox",
        "sidecar/system/sandbox.py",
        "        if self._lock(alone=True):\n",
        "        if True:\n",
        "tests/blackbox/hostile/test_trust.py -k another_sandbox",
    ),
    Mutant(
        "lets commands change hooks of nested repositories",
        "sidecar/system/sandbox.py",
        "        repositories = git_mounts.repositories_of(folders, view.repositories, view.bare)\n",
        "        repositories = git_mounts.repositories_of(folders, (), view.bare)\n",
        f"{SYSTEM}/test_survey.py -k nested",
    ),
    Mutant(
        "lets commands change scripts that hooks lead to",
        "sidecar/system/sandbox.py",
        "        read_only += git_mounts.steering_files(repositories, folders)\n",
        "",
        "tests/blackbox/hostile/test_git_elsewhere.py -k cannot_change",
    ),
    Mutant(
        "lets commands replace the folders of work trees",
        "sidecar/system/git_mounts.py",
        "        found.fixed.update(os.path.join(tree, name) for name in WORK_TREE_NAMES)\n",
        "",
        "tests/blackbox/hostile/test_git_elsewhere.py -k linked_work_tree",
    ),
    Mutant(
        "knows no repository by its content",
        "sidecar/system/git_folders.py",
        '    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))\n',
        "    return False\n",
        "tests/blackbox/hostile/test_git_elsewhere.py -k reported",
    ),
    Mutant(
        "reports nothing that was planted",
        "sidecar/system/survey.py",
        "    created = sorted(after.watched.keys() - before.watched.keys())\n",
        "    created: list[str] = []\n",
        f"{SYSTEM}/test_survey.py -k appears",
    ),
    Mutant(
        "sees no change that puts the time back",
        "sidecar/system/survey.py",
        "found.st_mtime_ns, found.st_ctime_ns)",
        "found.st_mtime_ns)",
        f"{SYSTEM}/test_survey.py -k changed",
    ),
    Mutant(
        "never looks at the limits",
        "sidecar/system/supervisor.py",
        "                self._hold_to_limits()\n",
        "",
        f"{SYSTEM}/test_limits.py -k shared",
    ),
]

IN_CI = {
    "passes every variable on",
    "shows the home",
    "lets commands write settings of ours",
    "reports nothing that was planted",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    [mutant for mutant in MUTANTS if ALL or mutant.name in IN_CI],
    ids=lambda mutant: mutant.name,
)
def test_a_mutant_is_caught(tmp_path: Path, mutant: Mutant) -> None:
    if sandbox.detect() is None:
        pytest.skip("bubblewrap does not work here")
    caught = run(source(tmp_path, mutant), mutant.caught_by, tmp_path)
    assert caught.returncode == 1, f"{mutant.name} lives\n{caught.stdout[-2000:]}{caught.stderr[-1000:]}"
    assert "failed" in caught.stdout or "FAILED" in caught.stdout, caught.stdout[-1000:]
