"""The other commands, each against a real sidecar."""

from __future__ import annotations

import json
import re
import zipfile

import jsonschema  # type: ignore[import-untyped]
import pytest
from sidecar_protocol.export.__main__ import TYPES
from sidecar_protocol.export.languages import LANGUAGES

from .shell import Shell

pytestmark = pytest.mark.slow


@pytest.fixture
def told(shell: Shell) -> Shell:
    """A shell with one chat in its database."""
    shell.output("chat", "--chat", "tab-7", "Hello **there**")
    return shell


def test_no_chats_is_said(shell: Shell) -> None:
    assert shell.output("chats") == "There are no chats yet.\n"


def test_chats_are_listed_and_filtered(told: Shell) -> None:
    head, row = told.output("chats").splitlines()
    assert (head.split(), row.split()[0]) == (["chat", "turns", "last", "title"], "tab-7")
    assert told.output("chats", "--query", "nothing-like-it") == "There are no such chats.\n"
    assert told.output("chats", "--archived") == "There are no such chats.\n"


def test_show_prints_what_was_said(told: Shell) -> None:
    expected = "> Hello **there**\n\nHello **there**\n\n"
    assert told.output("show", "tab-7") == expected
    assert told.output("show", "sc-tab-7-bf133f99bd6e5d06") == expected


def test_show_can_be_limited_to_the_last_turns(told: Shell) -> None:
    told.output("chat", "--chat", "tab-7", "Second")
    assert told.output("show", "tab-7", "-n", "1") == "> Second\n\nSecond\n\n"


def test_a_chat_that_is_not_there_is_not_made(told: Shell) -> None:
    done = told.run("show", "tab-8")
    remedy = "`sidecar chats` lists those that there are."
    assert (done.returncode, done.stderr) == (1, f"sidecar: There is no chat 'tab-8'.\n  {remedy}\n")
    assert "tab-8" not in told.output("chats")


def test_an_export_imports_as_it_was(told: Shell) -> None:
    assert told.run("export", "tab-7", "-o", "out.jsonl").returncode == 0
    done = told.run("import", "out.jsonl")
    assert (done.returncode, done.stderr) == (0, "1 turn in the chat out\n  sidecar chat --chat out\n")
    assert told.output("show", "out") == told.output("show", "tab-7")


def test_plain_turns_come_in_through_a_pipe(shell: Shell) -> None:
    lines = [{"role": "user", "text": "Who?"}, {"role": "assistant", "text": "Me."}]
    done = shell.run("import", "-", "--chat", "old", stdin="\n".join(map(json.dumps, lines)))
    assert done.returncode == 0, done.stderr
    assert shell.output("show", "old") == "> Who?\n\nMe.\n\n"


def test_an_import_over_a_chat_names_the_way_out(told: Shell) -> None:
    told.run("export", "tab-7", "-o", "out.jsonl")
    done = told.run("import", "out.jsonl", "--chat", "tab-7")
    assert done.returncode == 1
    assert "--append adds to it" in done.stderr
    assert told.run("import", "out.jsonl", "--chat", "tab-7", "--append").returncode == 0


def test_an_export_without_a_file_goes_to_stdout(told: Shell) -> None:
    assert all(json.loads(line) for line in told.output("export", "tab-7").splitlines())
    assert "Hello **there**" in told.output("export", "tab-7", "--format", "markdown")


def test_config_tells_where_each_value_comes_from(shell: Shell) -> None:
    rows = {row.split()[0]: row.split()[1:] for row in shell.output("config").splitlines()[1:]}
    assert rows["model"] == ['"echo:"', "environment"]
    assert rows["session.max_steps"] == ["50", "default"]


def test_config_sets_and_unsets_a_value(shell: Shell) -> None:
    file = shell.folder / "config" / "sidecar" / "config.toml"
    assert (
        shell.output("config", "set", "session.max_steps", "80") == f"session.max_steps = 80  (in {file})\n"
    )
    assert "max_steps = 80" in file.read_text()
    assert shell.output("config", "unset", "session.max_steps") == "session.max_steps is unset.\n"
    assert "max_steps" not in file.read_text()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [("modell", "x", "`modell`"), ("mode", "wild", "`mode`"), ("log.level", "7", "`log.level`")],
)
def test_config_refuses_by_name(shell: Shell, key: str, value: str, said: str) -> None:
    done = shell.run("config", "set", key, value)
    assert done.returncode == 1
    assert said in done.stderr


def test_doctor_checks_and_reports(shell: Shell) -> None:
    done = shell.run("doctor", "--report", "report.zip")
    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines() if line[:1].strip()} <= {"ok", "warn", "The"}
    assert zipfile.ZipFile(shell.folder / "report.zip").testzip() is None


def test_schema_is_an_openrpc_document(shell: Shell) -> None:
    document = json.loads(shell.output("schema"))
    assert "prompt/send" in [method["name"] for method in document["methods"]]


@pytest.mark.parametrize("form", LANGUAGES)
def test_schema_prints_the_types_that_are_committed(shell: Shell, form: str) -> None:
    file, _ = LANGUAGES[form]
    assert shell.output("schema", f"--{form}") == (TYPES / file).read_text("utf-8")


def test_schema_has_every_type_as_json_schema(shell: Shell) -> None:
    document = json.loads(shell.output("schema", "--json-schema"))
    assert document == json.loads((TYPES / "sidecar.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(document)


def test_schema_is_one_page_of_markdown_whose_links_stay_on_it(shell: Shell) -> None:
    page = shell.output("schema", "--markdown")
    targets = set(re.findall(r"\]\(([^)#][^)]*)\)", page))
    anchors = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert targets == set()
    assert anchors - {anchor_of(title) for title in re.findall(r"^#+ (.+)$", page, re.MULTILINE)} == set()
    assert '"type": "message.delta"' in page


def anchor_of(title: str) -> str:
    """As on GitHub."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "command",
    [("export", "tab-7", "-o"), ("patches", "tab-7", "--export", "-o"), ("doctor", "--report")],
    ids=lambda command: command[0],
)
def test_a_file_is_overwritten_only_when_asked(told: Shell, command: tuple[str, ...]) -> None:
    path = told.folder / "kept"
    path.write_text("mine")
    refused = told.run(*command, "kept")
    assert (refused.returncode, path.read_text()) == (1, "mine")
    assert "--overwrite replaces it" in refused.stderr
    told.run(*command, "kept", "--overwrite")
    assert path.read_bytes() != b"mine"
