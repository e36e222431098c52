"""Mutants that trust what they get: project files that have changed, databases and chats from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.mutants.patching import Mutant, run, source
from tests.blackbox.mutants.test_mutants import ALL

TRUST, FOREIGN = "tests/blackbox/hostile/test_trust.py", "tests/blackbox/hostile/test_foreign_databases.py"
SECRETS, REPOSITORIES = (
    "tests/blackbox/hostile/test_server_secrets.py",
    "tests/blackbox/hostile/test_repositories.py",
)

INJECTED = "tests/blackbox/hostile/test_injected_text.py"

MUTANTS = [
    Mutant(
        "sends control tokens to servers of the user",
        "sidecar/providers/http/provider.py",
        "        if may_parse_control_tokens(connection):\n",
        "        if False:\n",
        f"{INJECTED} -k control_token",
    ),
    Mutant(
        "repeats the variables of a server that fails",
        "sidecar/tools/mcp/connection.py",
        '        if len(value) >= MIN_LENGTH and not value.startswith("/"):\n',
        "        if False:\n",
        f"{SECRETS} -k that_fails",
    ),
    Mutant(
        "takes a look-alike of a fence's mark for other text",
        "sidecar/context/fences.py",
        "        if _fold_lookalikes(mark) not in folded:\n",
        "        if mark not in text:\n",
        f"{INJECTED} -k look_alike",
    ),
    Mutant(
        "lets the name of a file add lines to the user's rules",
        "sidecar/policy/instructions/rendering.py",
        "lambda found: _line(values.get(found[1], found[0]))",
        "lambda found: values.get(found[1], found[0])",
        f"{INJECTED} -k fills_no_rule",
    ),
    Mutant(
        "repeats a rule of the project outside of any fence",
        "sidecar/chat/tool_calls/permissions.py",
        "Denied: {_model_reason(decision)}.",
        "Denied: {decision.reason}.",
        f"{INJECTED} -k denial",
    ),
    Mutant(
        "trusts a project until the turn ends",
        "sidecar/chat/request/next_step.py",
        "        request = self._without_trust(request)\n",
        "",
        f"{INJECTED} -k next_step",
    ),
    Mutant(
        "lets text of files end messages of a local model",
        "sidecar/providers/local/prompt.py",
        '        message["content"] = break_control_tokens(message["content"])\n',
        "        pass\n",
        "tests/unit/local/test_prompt.py",
    ),
    Mutant(
        "opens its own data as a project",
        "sidecar/chat/journal/project_identity.py",
        "    inside = own_files.enclosing_folder(path, own)\n",
        "    inside = None\n",
        "tests/blackbox/hostile/test_own_folders.py",
    ),
    Mutant(
        "lets an untrusted project set every key",
        "sidecar/settings/key.py",
        '"any" if name in UNTRUSTED_KEYS else project',
        '"any" if project == "trusted" else project',
        "tests/blackbox/hostile/test_untrusted_settings.py",
    ),
    Mutant(
        "trusts whatever a project's files say now",
        "sidecar/system/trusted_files.py",
        "    return now == {path: row[0] for path, row in known.items() if _is_at_top(path)}\n",
        "    return True\n",
        f"{TRUST} -k changed_file",
    ),
    Mutant(
        "trusts every project",
        "sidecar/server/settings_cache.py",
        "    def is_trusted(self, project: str) -> bool:\n",
        (
            "    def is_trusted(self, project: str) -> bool:\n"
            "        return True\n"
            "\n"
            "    def was_trusted(self, project: str) -> bool:\n"
        ),
        f"{REPOSITORIES} -k settings",
    ),
    Mutant(
        "takes any database for its own",
        "sidecar/store/origin.py",
        "    if found == installation:\n",
        "    if True:\n",
        f"{FOREIGN} -k data",
    ),
    Mutant(
        "works in any folder that a foreign database names",
        "sidecar/store/tables/chats.py",
        "        project_path=None if elsewhere else project_path,\n",
        "        project_path=project_path,\n",
        f"{FOREIGN} -k until_an_app_names_it",
    ),
    Mutant(
        "strips a database without a word to the app",
        "sidecar/server/server.py",
        '{"state": "ready", **_removed_by_origin(store), **_low_disk(store)}',
        '{"state": "ready", **_low_disk(store)}',
        f"{FOREIGN} -k told",
    ),
    Mutant(
        "restores without asking who wrote it",
        "sidecar/store/maintenance.py",
        "            if not trust:\n",
        "            if False:\n",
        f"{FOREIGN} -k did_not_take",
    ),
    Mutant(
        "takes the mode and folders of an imported chat",
        "sidecar/model/chats.py",
        'TAKEN_FROM_ELSEWHERE = ("gates", "budgets", "compaction")\n',
        'TAKEN_FROM_ELSEWHERE = ("gates", "budgets", "compaction", "mode", "extraFolders")\n',
        "tests/blackbox/hostile/test_imported_chats.py -k nothing_of_it",
    ),
    Mutant(
        "runs triggers of a foreign database",
        "sidecar/store/origin.py",
        ("        check_schema(db)\n        before()\n"),
        "        before()\n",
        f"{FOREIGN} -k schema",
    ),
    Mutant(
        "keeps secrets in the configuration",
        "sidecar/chat/sessions/server_secrets.py",
        "    masked, _ = mcp_secrets.split(servers)\n",
        "    masked = servers\n",
        f"{SECRETS} -k no_answer",
    ),
    Mutant(
        "leaves secrets in older databases",
        "sidecar/store/tables/migrations.py",
        "                    moved = mcp_secrets.move_out(db)\n",
        "                    moved = 0\n",
        "tests/unit/store/test_mcp_secrets.py -k migration",
    ),
]

IN_CI = {
    "trusts whatever a project's files say now",
    "takes any database for its own",
    "keeps secrets in the configuration",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if ALL or one.name in IN_CI], ids=lambda mutant: mutant.name
)
def test_a_mutant_is_caught(tmp_path: Path, mutant: Mutant) -> None:
    caught = run(source(tmp_path, mutant), mutant.caught_by, tmp_path)
    assert caught.returncode == 1, f"{mutant.name} lives\n{caught.stdout[-2000:]}{caught.stderr[-1000:]}"
    assert "failed" in caught.stdout or "FAILED" in caught.stdout, caught.stdout[-1000:]
