"""Mutants that judge paths by their spelling, or read what a rule keeps back: the hostile suites catch each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.mutants.patching import Mutant, run, source
from tests.blackbox.mutants.test_mutants import ALL

LINKED, READING = (
    "tests/blackbox/hostile/test_linked_names.py",
    "tests/blackbox/hostile/test_reading_rules.py",
)

OWN_SETTINGS = "tests/blackbox/hostile/test_own_settings.py"
IMPORTED = "tests/blackbox/hostile/test_imported_links.py"
REVERSE = "tests/blackbox/hostile/test_reverse_links.py"
OTHER_WORDS = "tests/blackbox/hostile/test_other_words.py tests/unit/policy/test_command_variants.py"

MUTANTS = [
    Mutant(
        "lets edits change the user's own settings",
        "sidecar/workspace/paths.py",
        "        self.own_settings = tuple(os.path.realpath(path) for path in own_settings)\n",
        "        self.own_settings = ()\n",
        OWN_SETTINGS,
    ),
    Mutant(
        "lets edits change the program itself",
        "sidecar/workspace/names.py",
        "        ours = (*self._workspace.own_settings, *own_code.own_code_in(self._workspace.folders))\n",
        "        ours = self._workspace.own_settings\n",
        f"{OWN_SETTINGS} -k edit_of_the_running",
    ),
    Mutant(
        "lets edits put a journal beside the database",
        "sidecar/workspace/paths.py",
        "            if own_files.is_own_name(os.fstat(spot.folder), os.fsdecode(spot.name)):\n",
        "            if False:\n",
        OWN_SETTINGS,
    ),
    Mutant(
        "lets a command rename a folder around what is read-only",
        "sidecar/system/sandbox.py",
        "        mount_points = sorted({*_between(folders, fixed), *git.mount_points})\n",
        "        mount_points = sorted(git.mount_points)\n",
        OWN_SETTINGS,
    ),
    Mutant(
        "judges imported paths by their spelling",
        "sidecar/chat/actions/import_filter.py",
        "        names = (path, *self.all_names(path))\n",
        "        names = (path,)\n",
        IMPORTED,
    ),
    Mutant(
        "takes an imported open file for one that a person has chosen",
        "sidecar/chat/actions/import_filter.py",
        '    return {**entry, "imported": True}\n',
        "    return entry\n",
        IMPORTED,
    ),
    Mutant(
        "forgets that a protected name may be a link",
        "sidecar/workspace/link_scan.py",
        "            if entry.is_symlink():\n",
        "            if False:\n",
        REVERSE,
    ),
    Mutant(
        "lets edits change what git's settings name",
        "sidecar/workspace/names.py",
        "    for path, target in git_folders.links(git):\n",
        "    for path, target in ():\n",
        "tests/blackbox/hostile/test_git_elsewhere.py -k edit_of_it",
    ),
    Mutant(
        "lets commands read what rules withhold",
        "sidecar/tools/shell/runner.py",
        "        hidden = [*bounds.hidden, *context.hidden_files]\n",
        "        hidden = [*bounds.hidden]\n",
        "tests/blackbox/hostile/test_hidden_files.py -k no_command",
    ),
    Mutant(
        "lets git show files of commits",
        "sidecar/policy/programs.py",
        "        if git_history.shows_files(words):\n",
        "        if False:\n",
        "tests/blackbox/hostile/test_hidden_files.py -k history",
    ),
    Mutant(
        "relies on a sandbox that is not there",
        "sidecar/chat/tool_calls/call_context.py",
        '            return "there is no sandbox"\n',
        "            return None\n",
        "tests/blackbox/hostile/test_hidden_files.py -k without_a_sandbox",
    ),
    Mutant(
        "hides a file by one of its names",
        "sidecar/chat/tool_calls/hidden_files.py",
        "            self._add(os.path.join(self._workspace.root, name))\n",
        "            pass\n",
        "tests/unit/chat/test_hidden_files.py -k other_names",
    ),
    Mutant(
        "forgets what git's settings name until it exists",
        "sidecar/system/git_folders.py",
        " or (_FILE.fullmatch(word) and not os.path.lexists(path))",
        "",
        "tests/blackbox/hostile/test_git_elsewhere.py -k before_they_exist",
    ),
    Mutant(
        "does not protect the files of newer agents",
        "sidecar/policy/protected.py",
        " .qwen .copilot .github/hooks .codebuddy ",
        " ",
        "tests/blackbox/hostile/test_agents_files.py -k edit",
    ),
    Mutant(
        "looks for links in the project alone",
        "sidecar/workspace/names.py",
        "            scans = [link_scan.scan(folder) for folder in self._workspace.folders]\n",
        "            scans = [link_scan.scan(self._workspace.root)]\n",
        "tests/blackbox/hostile/test_extra_folders.py",
    ),
    Mutant(
        "shows the settings of MCP servers",
        "sidecar/policy/protected.py",
        " .mcp.json mcp.json .sidecar/config.toml .claude/settings.json\n",
        "\n",
        "tests/blackbox/hostile/test_server_settings.py",
    ),
    Mutant(
        "allows what it has not checked for links",
        "sidecar/policy/decide.py",
        "    reason = reason or _unchecked_reason(subject, parsed)\n",
        "",
        "tests/unit/workspace/test_link_scan.py",
    ),
    Mutant(
        "finds no link that was made since its first scan",
        "sidecar/workspace/link_scan.py",
        "    if known is not None and known.settled and known.stamp == stamp:\n",
        "    if known is not None:\n",
        "tests/blackbox/hostile/test_many_links.py tests/unit/workspace/test_link_scan.py",
    ),
    Mutant(
        "takes a stopped command in other words for another one",
        "sidecar/policy/command_variants.py",
        "    if not words or not matching.names_program(words[0], simple.argv):\n",
        "    if True:\n",
        OTHER_WORDS,
    ),
    Mutant(
        "lets commands walk over what a rule keeps",
        "sidecar/policy/withheld_files.py",
        "        if walks and any(map(_contains_all, names)):\n",
        "        if False:\n",
        "tests/blackbox/hostile/test_other_words.py",
    ),
    Mutant(
        "lets commands change what no tool may edit",
        "sidecar/policy/withheld_files.py",
        "    if found or only_reads(simple.argv):\n",
        "    if True:\n",
        OTHER_WORDS,
    ),
    Mutant(
        "judges a path by its spelling",
        "sidecar/policy/decide.py",
        "        return (path, *self.real(path)) if self.real else (path,)\n",
        "        return (path,)\n",
        LINKED,
    ),
    Mutant(
        "writes through a link that was exchanged",
        "sidecar/workspace/writing.py",
        "        if real is not None and real != workspace.real_path(path, spot):\n",
        "        if False:\n",
        f"{LINKED} -k exchanged",
    ),
    Mutant(
        "forgets hard links",
        "sidecar/workspace/names.py",
        "        if found.st_nlink < 2 or not stat.S_ISREG(found.st_mode):\n",
        "        if True:\n",
        f"{READING} -k no_tool_shows",
    ),
    Mutant(
        "shows matches in files that are kept back",
        "sidecar/tools/files/file_search.py",
        "    return [hit for hit in hits if query.stops(hit.path) is None]\n",
        "    return hits\n",
        f"{READING} -k grep",
    ),
    Mutant(
        "takes the copy of a secret for another file",
        "sidecar/policy/protected.py",
        '    plain = _SWAP.sub(r"/\\g<name>", _EMACS_COPY.sub(r"/\\1", plain))\n',
        "    return plain\n",
        f"{READING} -k copies",
    ),
    Mutant(
        "shows the whole diff",
        "sidecar/workspace/git.py",
        "        if not left:\n",
        "        if True:\n",
        f"{READING} -k diff",
    ),
    Mutant(
        "indexes what is kept back",
        "sidecar/index/folder.py",
        "    reasons = {name: left_out(name) for name in found} if left_out else {}\n",
        "    reasons: dict[str, str | None] = {}\n",
        f"{READING} -k indexes",
    ),
    Mutant(
        "finds what was indexed before the rule",
        "sidecar/chat/tool_calls/output_index.py",
        '    return rules.skip_reason(source.path) if source.path and source.kind == "file" else None\n',
        "    return None\n",
        f"{READING} -k before_the_rule",
    ),
    Mutant(
        "sends open files that are kept back",
        "sidecar/chat/request/project.py",
        "                if self._rules.skip_reason(shown, chosen=file.is_chosen):\n",
        "                if False:\n",
        f"{READING} -k prompt_is_sent",
    ),
    Mutant(
        "lets commands name what is kept back in auto",
        "sidecar/policy/decide.py",
        "    reason = reason or find_withheld(subject, parsed, rules)\n",
        "",
        f"{READING} -k unasked_in_auto",
    ),
]

IN_CI = {"judges a path by its spelling", "shows the whole diff"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if ALL or one.name in IN_CI], ids=lambda mutant: mutant.name
)
def test_a_mutant_is_caught(tmp_path: Path, mutant: Mutant) -> None:
    caught = run(source(tmp_path, mutant), mutant.caught_by, tmp_path)
    assert caught.returncode == 1, f"{mutant.name} lives\n{caught.stdout[-2000:]}{caught.stderr[-1000:]}"
    assert "failed" in caught.stdout or "FAILED" in caught.stdout, caught.stdout[-1000:]
