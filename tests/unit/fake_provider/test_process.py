"""`sidecar fake-provider` as an app developer runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sidecar.fake_provider import FAULTS, unused_port
from tests.support.patience import PATIENCE_S

COMMAND = [sys.executable, "-m", "sidecar", "fake-provider"]


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the line that it prints first."""
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def post(url: str, body: object, **headers: str) -> object:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def test_the_first_line_says_where_it_listens_and_what_to_set() -> None:
    port = unused_port()
    with running("--port", str(port), "--key", "k1") as (_, line):
        url, *variables = line.split()
        assert url == f"http://127.0.0.1:{port}"
        assert dict(variable.split("=", 1) for variable in variables) == {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "k1",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "k1",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "k1",
            "OLLAMA_HOST": url,
        }
        body = {"model": "fake-1", "messages": [{"role": "user", "content": "hi"}], "stream": False}
        answer = post(f"{url}/api/chat", body, authorization="Bearer k1")
        assert isinstance(answer, dict)
        assert answer["message"]["content"] == "You said: “hi”."


@pytest.mark.sampled(1)
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with running() as (process, _):
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, out, err) == (0, "", "")


def test_requests_are_logged_on_stderr_unless_it_is_to_be_quiet() -> None:
    for options, logged in (((), "POST /api/show -> 200\n"), (("--quiet",), "")):
        with running(*options) as (process, line):
            post(f"{line.split()[0]}/api/show", {"model": "fake-1"})
            process.terminate()
            assert process.communicate(timeout=PATIENCE_S)[1] == logged


def test_a_port_in_use_is_an_error_in_one_line() -> None:
    with running() as (_, line):
        port = line.split()[0].rpartition(":")[2]
        again = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, timeout=PATIENCE_S)
    assert again.returncode == 2
    assert again.stderr.startswith(f"sidecar: cannot listen on 127.0.0.1:{port}")


def test_faults_are_listed() -> None:
    listed = subprocess.run(
        [*COMMAND, "--list-faults"], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(FAULTS)
