"""Runs the real command: through pipes, or on a terminal of its own whose screen can be waited for."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

COMMAND = [sys.executable, "-m", "sidecar"]

_KEPT = ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


class Shell:
    """Commands in a folder of the test's own."""

    def __init__(self, folder: Path, model: str = "echo:") -> None:
        self.folder = folder
        self.env = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_DATA_HOME": str(folder / "share"),
            "SIDECAR_DATA_DIR": str(folder / "data"),
            "SIDECAR_MODEL": model,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "TERM": "xterm-256color",
        }

    def run(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *args],
            env=self.env,
            cwd=self.folder,
            input=stdin or "",
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )

    def play(self, *replies: list[Any]) -> Shell:
        """Have the model play these replies, prompt after prompt: each a list of texts, calls, calls at once, steps."""
        script = self.folder / "script.json"
        steps = [{"steps": [_step(each) for each in reply]} for reply in replies]
        script.write_text(json.dumps({"replies": steps, "onExhausted": "echo"}))
        self.env["SIDECAR_MODEL"] = f"scripted:{script}"
        return self

    def output(self, *args: str, stdin: str | None = None) -> str:
        """What a command that succeeds prints."""
        done = self.run(*args, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def items(self, chat: str, type: str = "tool") -> list[dict[str, Any]]:
        """The items of this type in a chat, as they were kept."""
        lines = [json.loads(line) for line in self.output("export", chat).splitlines()]
        kept = [item for line in lines if "turn" in line for item in line["turn"]["items"]]
        return [item for item in kept if item["type"] == type]

    @contextmanager
    def terminal(self, *args: str, stdout: Path | None = None, columns: int = 80) -> Iterator[Terminal]:
        """The command on a terminal of its own; what it prints may go to a file instead."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(ours, (24, columns))
        os.set_blocking(ours, False)
        out = theirs if stdout is None else os.open(stdout, os.O_WRONLY | os.O_CREAT, 0o600)
        process = subprocess.Popen(
            [*COMMAND, *args],
            env=self.env,
            cwd=self.folder,
            stdin=theirs,
            stdout=out,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        for each in {theirs, out}:
            os.close(each)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            process.wait()
            os.close(ours)


class Terminal:
    """What a user sees and types. `raw` is all that was printed, `seen` the same without control sequences."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self._process = process
        self._fd = fd
        self._raw = b""
        self._mark = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def raw(self) -> str:
        return self._raw.decode(errors="replace")

    @property
    def seen(self) -> str:
        return _CONTROL.sub("", self.raw)

    def type(self, text: str) -> None:
        data = text.encode()
        deadline = time.monotonic() + PATIENCE_S
        while data:
            # Read meanwhile: a terminal that nobody reads from takes no more keys either.
            _, write, _ = select.select([self._fd], [self._fd], [], PATIENCE_S)
            assert write or self._read(deadline), "the terminal takes no keys"
            if write:
                data = data[os.write(self._fd, data) :]

    def enter(self, text: str) -> None:
        self.type(text + "\r")

    def paste(self, text: str) -> None:
        """What a terminal sends for a paste: marked, with carriage returns."""
        self.type("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def resize(self, columns: int) -> None:
        termios.tcsetwinsize(self._fd, (24, columns))

    @property
    def echoes(self) -> bool:
        """Whether the terminal itself shows what is typed, as it did before the command."""
        return bool(termios.tcgetattr(self._fd)[3] & termios.ECHO)

    def interrupt(self, text: str) -> None:
        """Ctrl-C, through the terminal's line discipline, and wait for `text`.

        Pressed again after a while, as a user would: an interrupt between printing the prompt and waiting for a
        key is not noticed by Python's `input`, and a busy machine makes that moment long.
        """
        self.type("\x03")
        deadline = time.monotonic() + PATIENCE_S
        while self.seen.find(text, self._mark) < 0:
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.seen[self._mark :]!r}"
            if select.select([self._fd], [], [], 2.0)[0]:
                assert self._read(deadline), f"{text!r} did not come: {self.seen[self._mark :]!r}"
            else:
                self.type("\x03")
        self.wait_for(text)

    def wait_for(self, text: str) -> str:
        """Read on until `text` appears after what was waited for before; returns what came in between."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.seen.find(text, self._mark)) < 0:
            assert self._read(deadline), f"{text!r} did not come: {self.seen[self._mark :]!r}"
        start, self._mark = self._mark, found + len(text)
        return self.seen[start:found]

    def child(self) -> int:
        """The sidecar that the command has spawned."""
        (found,) = {
            int(pid)
            for task in Path(f"/proc/{self._process.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()
        }
        return found

    def leave_code(self) -> int:
        """The exit code, once the command has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self._process.wait(PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        """False at the end."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing came: {self.seen[self._mark :]!r}"
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self._raw += data
        return bool(data)


def call(name: str, **input: Any) -> dict[str, Any]:
    """A call of a tool, for `Shell.play`."""
    return {"name": name, "input": input}


def _step(step: Any) -> dict[str, Any]:
    if isinstance(step, str):
        return {"text": step}
    if isinstance(step, list):
        return {"toolCalls": step}
    return {"toolCall": step} if "name" in step else dict(step)


def _take_terminal() -> None:
    import fcntl

    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
