"""Section 1 and guarantee 12: whatever ends the client ends the sidecar, within 2 s, with nothing left."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.scripts import write_script
from tests.support.sidecar import EXIT_WITHIN, Sidecar
from tests.support.spawner import COMMAND, Spawner
from tests.support.verdict import journal_violations

HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize",'
    b'"params":{"protocol":"sidecar","versions":[1],"client":{"name":"x"}}}\n'
)
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
SEND = (
    b'{"jsonrpc":"2.0","id":3,"method":"prompt/send","params":{"chatId":"c","promptId":"p","text":"hello"}}\n'
)


@pytest.fixture
def streaming(spawn: Spawner) -> Sidecar:
    """A sidecar in the middle of a stream."""
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    return sidecar


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing but live, to stand for the client."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_in_the_middle_of_a_stream_ends_it_with_128_plus_n(
    streaming: Sidecar, number: signal.Signals
) -> None:
    streaming.signal(number)
    assert streaming.wait(EXIT_WITHIN) == 128 + number


def test_eof_in_the_middle_of_a_stream_ends_it_with_0(streaming: Sidecar) -> None:
    streaming.close_stdin()
    assert streaming.wait(EXIT_WITHIN) == 0


def test_a_chat_whose_settings_are_broken_does_not_keep_others_from_being_closed(
    streaming: Sidecar, tmp_path: Path
) -> None:
    (tmp_path / "broken/.sidecar").mkdir(parents=True)
    (tmp_path / "broken/.sidecar/config.toml").write_text("model = [")
    streaming.refused("chat/open", chatId="broken", projectPath=str(tmp_path / "broken"))
    streaming.close_stdin()
    assert streaming.wait(EXIT_WITHIN) == 0
    errors = [line["message"] for line in streaming.log_lines() if line["level"] in ("error", "critical")]
    assert errors == ["a chat was not closed"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_turn_that_a_signal_ends_is_interrupted_not_lost(
    streaming: Sidecar, spawn: Spawner, number: signal.Signals
) -> None:
    streaming.signal(number)
    streaming.wait(EXIT_WITHIN)
    opened = spawn().call("chat/open", chatId="c")
    assert (opened["turns"][-1]["status"], opened.get("recovered")) == ("interrupted", None)


def test_a_signal_before_initialize_ends_it(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    sidecar.call("ping")
    sidecar.signal(signal.SIGTERM)
    assert sidecar.wait(EXIT_WITHIN) == 128 + signal.SIGTERM


def test_two_signals_end_it_as_one_does(streaming: Sidecar) -> None:
    streaming.signal(signal.SIGTERM)
    streaming.signal(signal.SIGTERM)
    assert streaming.wait(EXIT_WITHIN) == 128 + signal.SIGTERM


@pytest.mark.sampled(1)
@pytest.mark.parametrize("reap", [True, False], ids=["gone", "zombie"])
def test_the_clients_death_ends_it_though_the_pipe_stays_open(
    spawn: Spawner, bystander: subprocess.Popen[bytes], reap: bool
) -> None:
    sidecar = spawn(model=write_script(spawn.folder), processId=bystander.pid)
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    bystander.kill()
    if reap:
        bystander.wait()
    assert sidecar.wait(EXIT_WITHIN) == 0


MIDDLE = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
print(child.pid, file=sys.stderr, flush=True)
child.wait()
"""


def test_a_parent_that_dies_takes_its_sidecar_along(spawn: Spawner) -> None:
    """A middle process spawns the sidecar on our pipes and is killed. The pipes stay open."""
    with subprocess.Popen(
        [sys.executable, "-c", MIDDLE, *COMMAND],
        env=spawn.environment(model=write_script(spawn.folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as middle:
        assert middle.stdin
        assert middle.stdout
        assert middle.stderr
        pid = int(middle.stderr.readline())
        middle.stdin.write(HELLO.replace(b'"versions"', b'"processId":%d,"versions"' % middle.pid))
        middle.stdin.write(SEND.replace(b"hello", b"hang"))
        while b"message.delta" not in middle.stdout.readline():
            pass
        middle.kill()
        assert processes.wait_until_gone(pid, EXIT_WITHIN)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("turns", [1, 4, 9])
def test_leaving_while_a_queue_runs_leaves_no_turn_open(spawn: Spawner, turns: int) -> None:
    sidecar = spawn()
    ids = [sidecar.ask("prompt/send", chatId="c", promptId=f"p{n}", text="hello") for n in range(100)]
    session = sidecar.result(ids[0])["sessionId"]
    sidecar.wait_until(lambda: len(sidecar.events(session, "turn.ended")) >= turns, PATIENCE_S, "turns")
    sidecar.close_stdin()
    assert sidecar.wait(EXIT_WITHIN) == 0
    assert journal_violations(session, spawn().journal(session)) == []


def test_frames_before_eof_are_all_answered(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    ids = [sidecar.ask("initialize", protocol="sidecar", versions=[1], client={"name": "x"})]
    ids += [sidecar.ask("chat/open", chatId=f"c{n}") for n in range(30)]
    ids += [sidecar.ask("prompt/send", chatId=f"c{n}", promptId="p", text="hello") for n in range(30)]
    sidecar.close_stdin()
    assert sidecar.wait(EXIT_WITHIN) == 0
    codes = [sidecar.answer(id).get("error", {}).get("code") for id in ids]
    assert set(codes) <= {None, -32016}
    assert codes[0] is None


def run(
    spawn: Spawner, tmp_path: Path, redirections: str, command: list[str]
) -> subprocess.CompletedProcess[bytes]:
    """Run the command under a shell with the given redirections and wait for its end."""
    words = " ".join(f"'{word}'" for word in command)
    return subprocess.run(
        ["sh", "-c", f"exec {words} {redirections}"],
        env=spawn.environment(),
        cwd=tmp_path,
        capture_output=True,
        timeout=EXIT_WITHIN + 1,
        check=False,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stdin", ["<&-", "</dev/null"])
def test_no_input_at_all_ends_it_at_once(spawn: Spawner, tmp_path: Path, stdin: str) -> None:
    ended = run(spawn, tmp_path, stdin, COMMAND)
    assert (ended.returncode, ended.stdout) == (0, b"")


def test_a_file_as_input_is_answered_into_a_file(spawn: Spawner, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HELLO + PING + SEND)
    ended = run(spawn, tmp_path, "<in >out", COMMAND)
    answers = (tmp_path / "out").read_bytes()
    assert ended.returncode == 0
    assert all(b'"id":%d' % id in answers.replace(b" ", b"") for id in (1, 2, 3))


def test_a_last_line_without_its_newline_counts(spawn: Spawner, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HELLO + PING.rstrip())
    run(spawn, tmp_path, "<in >out", COMMAND)
    assert b'"id":2' in (tmp_path / "out").read_bytes().replace(b" ", b"")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_a_closed_stream_neither_hangs_it_nor_loses_what_was_sent(
    spawn: Spawner, tmp_path: Path, closed: str
) -> None:
    (tmp_path / "in").write_bytes(HELLO + SEND)
    redirections = closed if "<&-" in closed else f"<in {closed}"
    ended = run(spawn, tmp_path, redirections, COMMAND)
    assert ended.returncode >= 0, "killed by a signal"


def test_nothing_but_frames_reaches_stdout_when_stderr_is_closed(spawn: Spawner, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HELLO + b"nonsense\n" + PING)
    run(spawn, tmp_path, "<in >out 2>&-", [*COMMAND, "--log-level", "trace"])
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    assert len(lines) >= 3


def test_a_reader_that_goes_away_ends_it(spawn: Spawner) -> None:
    process = subprocess.Popen(
        COMMAND,
        env=spawn.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )
    assert process.stdin
    assert process.stdout
    with process:
        process.stdin.write(HELLO)
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(SEND)
        try:
            assert process.wait(EXIT_WITHIN) >= 0
        finally:
            process.kill()


def test_a_client_that_does_not_drain_stderr_does_not_stall_it(spawn: Spawner) -> None:
    sidecar = spawn("--log-level", "trace", drain_stderr=False)
    sidecar.referee.lenient = True
    for number in range(100):
        sidecar.ask("chat/open", chatId=f"c{number}")
        sidecar.send_bytes(b"nonsense %d\n" % number)
        assert sidecar.run(f"words and words {number}", chatId=f"c{number}")["data"]["reason"] == "end_turn"


def test_logs_are_objects_and_trace_shows_no_values(spawn: Spawner) -> None:
    sidecar = spawn("--log-level", "trace")
    sidecar.run("xyzzycanary", chatId="c")
    sidecar.close_stdin()
    sidecar.wait()
    assert sidecar.log_lines()
    assert not [line for line in sidecar.log_lines() if "xyzzycanary" in str(line)]


def test_another_sidecar_is_not_harmed_by_a_signal_to_one(spawn: Spawner) -> None:
    first, second = spawn(), spawn()
    first.signal(signal.SIGTERM)
    first.wait(EXIT_WITHIN)
    assert second.run("hello", chatId="c")["data"]["reason"] == "end_turn"


def test_it_burns_no_processor_time_while_idle(sidecar: Sidecar) -> None:
    """A second of idleness costs less than a tenth of a second; the wait is for a status that never comes."""
    sidecar.run("hello", chatId="c")
    before = processes.cpu_seconds(sidecar.pid)
    with pytest.raises(AssertionError):
        sidecar.wait_frame(lambda f: f.get("method") == "never", timeout=1.0)
    assert processes.cpu_seconds(sidecar.pid) - before < 0.1
