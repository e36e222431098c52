"""`sidecar chat` for scripts: a question, piped lines, files, pipes that break."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.patience import PATIENCE_S

from .shell import COMMAND, Shell

pytestmark = pytest.mark.slow

AWKWARD = "  **bold** <b> [x](y) — ünïcödé 🎈\n\n```\ncode\n```  end"


@pytest.fixture
def failing(shell: Shell) -> Shell:
    script = shell.folder / "script.json"
    replies = [
        {"match": "fail", "steps": [{"text": "half an"}, {"error": {"reason": "bad_key"}}]},
        {"match": "", "steps": [{"text": "fine"}]},
    ]
    script.write_text(json.dumps({"replies": replies}))
    shell.env["SIDECAR_MODEL"] = f"scripted:{script}"
    return shell


def test_a_question_is_answered_with_the_exact_text(shell: Shell) -> None:
    assert shell.output("chat", AWKWARD) == AWKWARD + "\n"


def test_the_answer_goes_into_a_file(shell: Shell) -> None:
    target = shell.folder / "answer.txt"
    with target.open("w") as out:
        command = [*COMMAND, "chat", "Hello"]
        code = subprocess.call(
            command, env=shell.env, stdin=subprocess.DEVNULL, stdout=out, timeout=PATIENCE_S
        )
    assert (code, target.read_text()) == (0, "Hello\n")


def test_piped_lines_are_answered_one_by_one_in_one_chat(shell: Shell) -> None:
    lines = "one\n\n//two\n/usr/bin is a folder\nthree"
    answers = "one\n/two\n/usr/bin is a folder\nthree\n"
    assert shell.output("chat", "--chat", "lines", stdin=lines) == answers
    assert shell.output("show", "lines").count("> ") == 4


def test_a_question_may_be_a_command(shell: Shell) -> None:
    (shell.folder / "src").mkdir()
    for name in ("one.py", "two.py"):
        (shell.folder / "src" / name).write_text("pass\n")
    options = ("chat", "--chat", "files", "--project", str(shell.folder))
    opened = shell.output(*options, "/open src/*.py", stdin="piped text is no part of a command\n")
    assert ("one.py" in opened, "two.py" in opened, "piped" in opened) == (True, True, False)
    assert "one.py" in shell.output(*options, "/open:list")
    assert "The mode is auto." in shell.output(*options, "/mode auto")
    refused = shell.run(*options, "/opne src/one.py")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "/open" in refused.stderr


def test_piped_lines_may_be_commands(shell: Shell) -> None:
    (shell.folder / "one.py").write_text("pass\n")
    lines = "/open one.py\n/closs one.py\nhello\n /close one.py\n/open:list\n/quit\nnever\n"
    done = shell.run("chat", "--chat", "piped", "--project", str(shell.folder), stdin=lines)
    assert done.returncode == 1
    assert "Did you mean /close?" in done.stderr
    assert "one.py" in done.stdout
    assert "\nhello\n" in done.stdout
    assert "never" not in done.stdout
    assert shell.output("show", "piped").count("hello") == 2


def test_piped_text_is_put_below_a_question(shell: Shell) -> None:
    assert shell.output("chat", "Review this", stdin="a\nb\n") == "Review this\n\na\nb\n"


def test_bytes_that_are_no_text_do_not_stop_it(shell: Shell) -> None:
    done = subprocess.run(
        [*COMMAND, "chat"],
        env=shell.env,
        input=b"caf\xe9\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout.decode() == "caf�\n"


def test_a_failed_turn_has_its_text_its_message_and_an_exit_code(failing: Shell) -> None:
    done = failing.run("chat", "fail")
    assert (done.returncode, done.stdout) == (1, "half an\n")
    assert done.stderr.startswith("sidecar: error: ")


def test_after_a_failed_line_the_next_is_answered(failing: Shell) -> None:
    done = failing.run("chat", stdin="fail\nagain\n")
    assert (done.returncode, done.stdout) == (1, "half an\nfine\n")


def test_a_model_that_is_not_there_is_named(shell: Shell) -> None:
    done = shell.run("chat", "--model", "nobody:1", "Hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nobody:1" in done.stderr


def test_a_reader_that_goes_away_is_no_error_to_talk_about(shell: Shell) -> None:
    question = "word " * 20_000
    with subprocess.Popen(
        [*COMMAND, "chat"],
        env=shell.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(question.encode() + b"\n")
        process.stdin.close()
        assert process.stdout.read(10) == b"word word "
        process.stdout.close()
        assert (process.stderr.read(), process.wait(PATIENCE_S)) == (b"", 141)


def test_a_fresh_chat_gets_an_id_that_says_where_it_comes_from(shell: Shell) -> None:
    shell.output("chat", "Hello")
    assert shell.output("chats").splitlines()[1].startswith("terminal-2")
