"""What a rule or a secret name keeps back is shown by no reader, whatever the file is called there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sidecar.policy.read_rules import ReadRules, excluded_summary
from sidecar.tools.base import ToolError, ToolOutcome
from sidecar.tools.files.edit_file import EditFile
from sidecar.tools.files.grep import Grep
from sidecar.workspace.names import RealNames
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest
from tests.blackbox.work.workbench import Json, Workbench, call, outputs, statuses, tools
from tests.support.sidecar import Sidecar
from tests.unit.policy.test_decide import rule
from tests.unit.tools.context import FolderContext, carry_out

SECRET = "walnut-4711"
"""Stands in every file that is kept back, and nowhere else."""


@pytest.fixture
def kept(bench: Workbench) -> Workbench:
    """A project with files that are kept back by a rule, by their name, and by links and hard links to them."""
    project = bench.project
    for path in (
        "vault/plain.txt",
        "vault/deep/er.py",
        "server.pem",
        "conf/.env.local",
        "api.key",
        "asked/x.txt",
    ):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(f"password = {SECRET}\n")
    (project / 'vault/we"ird \u00e9 name.txt').write_text(f"old {SECRET}\n")
    (project / "open.txt").write_text("password = public\n")
    bench.git("add", "-f", ".")
    bench.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "kept")
    (project / "alias.txt").symlink_to("vault/plain.txt")
    (project / "room").symlink_to("vault")
    (project / "hop").symlink_to("room")
    os.link(project / "vault/plain.txt", project / "twin.txt")
    return bench


def start(bench: Workbench, *steps: Any, mode: str = "ask", answer: str = "deny_once") -> Sidecar:
    sidecar = bench.start([*steps, "done"], ["again"], mode=mode)
    sidecar.answering["permission/request"] = lambda params: {"decision": answer}
    sidecar.call("permissionRules/set", chatId="c", scope="project", effect="deny", rule="read(vault/**)")
    sidecar.call("permissionRules/set", chatId="c", scope="project", effect="ask", rule="read(asked/**)")
    return sidecar


def shown(sidecar: Sidecar) -> str:
    session = sidecar.run("go", chatId="c")["sessionId"]
    return "\n".join(outputs(sidecar, session))


READERS = [
    call("read_file", path="alias.txt"),
    call("read_file", path="room/plain.txt"),
    call("read_file", path="hop/deep/er.py"),
    call("read_file", path="twin.txt"),
    call("read_file", path="src/../VAULT/../room/deep/er.py"),
    call("grep", pattern="password|old"),
    call("grep", pattern="password", path="vault"),
    call("grep", pattern="password", path="room"),
    call("grep", pattern="password", path="hop/deep"),
    call("grep", pattern="password", glob="*.{py,pem,key,local}"),
    call("grep", pattern=SECRET, output="count"),
    call("grep", pattern="password", path="alias.txt"),
    call("index_path", path="."),
    call("index_path", path="room"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", ["ask", "auto"])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: str(reader["input"]))
def test_no_tool_shows_what_is_kept_back(kept: Workbench, reader: Json, mode: str) -> None:
    search = call("search_context", queries=[SECRET, "password"], scope="project")
    sidecar = start(kept, reader, search, mode=mode)
    session = sidecar.run("go", chatId="c")["sessionId"]
    texts = outputs(sidecar, session)

    assert SECRET not in "\n".join(texts).replace(f"Nothing holds these words: {SECRET}", "").replace(
        f"## {SECRET}", ""
    )


def test_what_is_left_out_of_a_search_is_counted_and_named(kept: Workbench) -> None:
    text = shown(start(kept, call("grep", pattern="password")))
    assert "open.txt:1:password = public" in text
    assert "8 files are left out" in text
    assert "a rule denies read(vault/**)" in text


def test_a_file_that_is_left_out_is_told_whether_it_matches_or_not(kept: Workbench) -> None:
    steps = [call("grep", pattern=pattern, path="vault") for pattern in ("password", "no such words")]
    session = (sidecar := start(kept, *steps)).run("go", chatId="c")["sessionId"]
    first, second = outputs(sidecar, session)
    assert first == second
    assert "3 files are left out" in first


@pytest.mark.sampled(1)
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("change", ["edited", "deleted", "moved"])
def test_a_diff_leaves_out_what_is_kept_back(kept: Workbench, staged: bool, change: str) -> None:
    project = kept.project
    if change == "deleted":
        (project / "twin.txt").unlink()  # its other name is gone then, and it is a file like any other
    for path in ("vault/plain.txt", "vault/deep/er.py", 'vault/we"ird \u00e9 name.txt', "server.pem"):
        if change == "edited":
            with (project / path).open("a") as file:
                file.write(f"new {SECRET}\n")
        elif change == "deleted":
            (project / path).unlink()
        else:
            (project / path).rename(project / "vault" / f"moved-{Path(path).stem}.key")
    (project / "open.txt").write_text("password = changed\n")
    if staged:
        kept.git("add", "-A", "-f")
    text = shown(start(kept, call("git_diff", staged=staged)))

    assert SECRET not in text
    assert "+password = changed" in text
    assert "left out" in text


def test_a_prompt_is_sent_without_what_is_kept_back(kept: Workbench) -> None:
    """Open files, also those that a search has opened before there was a rule; and the diff of git."""
    (kept.project / "vault/plain.txt").write_text(f"newer {SECRET}\n")
    (kept.project / "open.txt").write_text("password = changed\n")
    sidecar = kept.start([call("read_file", path="vault/deep/er.py"), "done"])
    sidecar.run("go", chatId="c")
    sidecar.call("files/open", chatId="c", path="vault/plain.txt")
    sidecar.call("files/open", chatId="c", path="api.key")
    sidecar.call("permissionRules/set", chatId="c", scope="project", effect="deny", rule="read(vault/**)")
    preview = sidecar.call(
        "chat/context",
        chatId="c",
        text="Show the git diff and fix vault/plain.txt, api.key and vault/deep/er.py",
        includeText=True,
    )
    blocks = {block["id"]: block for block in preview["blocks"]}
    assert blocks["file:vault/plain.txt"]["gate"] == "denied"
    assert blocks["file:vault/plain.txt"]["included"] == "dropped"
    assert "newer" not in str(preview)
    assert "left out" in blocks["gitDiff"]["label"]
    assert "changed" in blocks["gitDiff"]["text"]
    # The user has named this very file: a secret name alone does not keep it back.
    assert SECRET in blocks["file:api.key"]["text"]


def test_a_glob_opens_no_secrets_and_counts_them(kept: Workbench) -> None:
    sidecar = start(kept)
    changed = sidecar.call("files/open", chatId="c", glob="*.{txt,key,pem}")
    opened = [os.path.relpath(file["path"], os.path.realpath(kept.project)) for file in changed["files"]]
    assert sorted(opened) == ["notes.txt", "open.txt"]
    assert changed["left"] >= 5


def test_the_app_indexes_a_folder_without_what_is_kept_back(kept: Workbench) -> None:
    sidecar = start(kept)
    added = sidecar.call("index/add", chatId="c", path=".")
    reasons = {one["path"]: one["reason"] for one in added["skipped"]}
    assert {"vault/plain.txt", "twin.txt", "server.pem", "conf/.env.local", "asked/x.txt"} <= set(reasons)
    assert SECRET not in str(sidecar.call("index/search", chatId="c", queries=["password"], scope="project"))


def test_what_was_indexed_before_the_rule_is_found_no_more(kept: Workbench) -> None:
    search = call("search_context", queries=["password"], scope="project")
    sidecar = kept.start(["first"], [search, "done"])
    (kept.project / "later").mkdir()
    (kept.project / "later/a.txt").write_text(f"password = {SECRET}\n")
    (kept.project / "door").symlink_to("later")
    added = sidecar.call("index/add", chatId="c", path="later")["sources"]
    sidecar.run("go", chatId="c")
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="read(later/)")
    session = sidecar.run("go", chatId="c")["sessionId"]
    (item,) = tools(sidecar, session)
    assert added
    assert SECRET not in item["output"]["text"]
    assert "1 file is left out: later/a.txt" in item["output"]["text"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "command",
    [
        "cat vault/plain.txt",
        "cat alias.txt",
        "cd room && cat plain.txt",
        "head v*/plain.txt",
        "cat < hop/deep/er.py",
    ],
)
def test_a_command_that_names_what_is_kept_back_does_not_run_unasked_in_auto(
    kept: Workbench, command: str
) -> None:
    sidecar = start(kept, call("run_command", command=command), mode="auto")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["denied"]


COPIES = ["id_rsa~", ".server.pem.swp", "#.env#", "tls.key.orig", ".netrc.old", "deep/credentials.json.bak.2"]


def test_copies_that_editors_leave_of_a_secret_are_secret(bench: Workbench) -> None:
    for name in COPIES:
        (bench.project / name).parent.mkdir(exist_ok=True)
        (bench.project / name).write_text(f"password = {SECRET}\n")
    (bench.project / "notes.bak").write_text("password = public\n")
    search = call("search_context", queries=["password"], scope="project")
    steps = [call("grep", pattern="password"), call("index_path", path="."), search]
    sidecar = bench.start([*steps, *(call("read_file", path=name) for name in COPIES), "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny_once"}
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == [*["completed"] * 3, *["denied"] * len(COPIES)]
    found = outputs(sidecar, session)
    assert SECRET not in "".join(found)
    assert "notes.bak:1:password = public" in found[0]
    assert f"{len(COPIES)} files are left out" in found[0]


def test_leave_for_a_secret_folder_covers_what_is_in_it(bench: Workbench) -> None:
    (bench.project / ".ssh").mkdir()
    (bench.project / ".ssh/config").write_text("password = asked\n")
    sidecar = bench.start([call("grep", pattern="password", path=".ssh"), "done"], mode="ask")
    sidecar.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    assert "password = asked" in shown(sidecar)


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
    for path in ("vault/a.txt", "b.txt", ".env"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(f"{path} {SECRET}\n")
    context = FolderContext(Workspace(str(tmp_path)))
    context.rules = [rule("deny", "read(vault/**)")]
    return context


@pytest.mark.parametrize(
    "program",
    [
        None,
        pytest.param(
            "rg", marks=pytest.mark.skipif(not shutil.which("rg"), reason="ripgrep is not installed")
        ),
    ],
)
async def test_grep_leaves_the_same_files_out_with_and_without_ripgrep(
    context: FolderContext, program: str | None
) -> None:
    tool = Grep(lambda: program and shutil.which(program))
    outcome = await carry_out(tool, {"pattern": SECRET}, context)
    assert outcome == ToolOutcome(
        f"b.txt:1:b.txt {SECRET}\n(2 files are left out: .env (.env asks: it holds keys or passwords);"
        " vault/a.txt (a rule denies read(vault/**)))",
        matched=("b.txt",),
    )


async def test_an_edit_that_fails_shows_nothing_of_a_file_that_may_not_be_read(
    context: FolderContext,
) -> None:
    context.seen_hashes["vault/a.txt"] = digest(f"vault/a.txt {SECRET}\n".encode())
    with pytest.raises(ToolError) as wrong:
        await carry_out(
            EditFile(), {"path": "vault/a.txt", "old_string": "vault/b", "new_string": "x"}, context
        )
    assert SECRET not in str(wrong.value)
    assert "may not be read" in str(wrong.value)


@pytest.mark.parametrize(
    ("path", "granted", "chosen", "stopped"),
    [
        ("vault/a.txt", None, True, True),
        ("vault/a.txt", "vault", False, True),
        ("VAULT/a.txt", None, False, True),
        ("asked/a", None, False, True),
        ("asked/a", None, True, False),
        ("asked/a", "asked/a", False, False),
        (".env", None, False, True),
        (".env", ".env", False, False),
        (".env", None, True, False),
        ("given.pem", None, False, False),
        ("b.txt", None, False, False),
    ],
)
def test_which_files_are_left_out(
    tmp_path: Path, path: str, granted: str | None, chosen: bool, stopped: bool
) -> None:
    given = [rule("deny", "read(vault/**)"), rule("ask", "read(asked/**)"), rule("allow", "read(=given.pem)")]
    for mode in ("ask", "auto", "read-only", "accept-edits"):
        rules = ReadRules(given, mode, RealNames(Workspace(str(tmp_path))), granted)
        assert (rules.skip_reason(path, chosen=chosen) is not None) == stopped


def test_a_policy_that_fails_leaves_everything_out() -> None:
    class Failing:
        def __call__(self, path: str) -> list[str]:
            if path == "a":
                raise RuntimeError
            return []

        def aliases(self, path: str) -> list[str]:
            return []

        def absolute(self, path: str) -> str | None:
            return None

        def runs_outside(self, path: str) -> bool:
            return False

        def unchecked(self, path: str) -> str | None:
            return None

        def expand(self, pattern: str) -> list[str]:
            return []

    rules = ReadRules([rule("deny", "read(b)")], "auto", Failing())
    with pytest.raises(RuntimeError):
        rules.skip_reason("a")


def test_the_words_name_some_files_and_count_the_others() -> None:
    assert excluded_summary([]) == ""
    assert excluded_summary([("a", "why")]) == "1 file is left out: a (why)"
    assert excluded_summary([(str(at), "w") for at in range(7)]).endswith("4 (w); 2 more")
