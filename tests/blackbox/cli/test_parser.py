"""What the command line accepts, and how it answers what it does not."""

from __future__ import annotations

import sys

import pytest

from sidecar import __version__
from sidecar.cli import main
from sidecar.cli.parser import build_parser
from sidecar.server import bootstrap
from sidecar.system.launch import ServeOptions


def test_version_needs_nothing_heavy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert (caught.value.code, capsys.readouterr().out) == (0, f"sidecar {__version__}\n")


def test_every_command_stands_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    words = capsys.readouterr().out.split()
    commands = ["chat", "chats", "show", "patches", "export", "import", "config", "doctor", "schema", "serve"]
    assert [name for name in commands if name not in words] == []


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["chatt"], "invalid choice: 'chatt'"),
        (["show"], "the following arguments are required: CHAT"),
        (["serve", "--framing", "smoke"], "argument --framing: invalid choice: 'smoke'"),
        (["serve", "--log-level", "loud"], "argument --log-level: invalid choice: 'loud'"),
        (["chat", "--mode", "wild"], "argument --mode: invalid choice: 'wild'"),
        (["chat", "--project", ".", "--no-project"], "not allowed with argument --project"),
        (["chat", "--yes"], "unrecognized arguments: --yes"),
        (["export", "x", "--format", "pdf"], "argument --format: invalid choice: 'pdf'"),
    ],
)
def test_a_wrong_word_is_named_with_where_to_look(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    said = capsys.readouterr()
    assert (caught.value.code, said.out) == (2, "")
    assert told in said.err
    assert "--help` explains" in said.err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["chat", "--chat", ""], "--chat: a chat's id has 1 to 512 bytes"),
        (["chat", "--chat", "x" * 513], "--chat: a chat's id has 1 to 512 bytes"),
        (["chat", "--project", "/no/such"], "--project: /no/such is not a folder"),
        (["chat", "  "], "question: it is empty"),
        (["chats", "--config", "/no/such.toml"], "--config: there is no file /no/such.toml"),
        (["import", "/no/such.jsonl"], "FILE: there is no file /no/such.jsonl"),
        (["show", "x", "--turns", "0"], "--turns: 0 is less than 1"),
    ],
)
def test_a_wrong_value_names_the_field_and_the_remedy(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith(f"sidecar: {told}")


def test_an_option_counts_before_and_after_the_command() -> None:
    parse = build_parser().parse_args
    assert parse(["--data-dir", "d", "chats"]).data_dir == parse(["chats", "--data-dir", "d"]).data_dir == "d"


def test_serve_hands_its_options_to_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ServeOptions] = []
    monkeypatch.setattr(bootstrap, "serve", seen.append)
    main(["serve", "--data-dir", ":memory:", "--chat-id", "x"])
    (options,) = seen
    assert (options.data_dir, options.chat_id, options.framing) == (":memory:", "x", "auto")
