"""Spawns sidecars for one test, each in the test's own folder, and settles the account at its end."""

from __future__ import annotations

import os
import shlex
import sys
import uuid
from pathlib import Path
from typing import Any

from . import processes
from .patience import PATIENCE_S
from .sidecar import Sidecar

COMMAND = shlex.split(os.environ.get("SIDECAR_TEST_COMMAND", "")) or [
    sys.executable,
    "-m",
    "sidecar",
    "serve",
]
"""The program under test: any command line that speaks the contract on stdin and stdout."""

FRAMING = os.environ.get("SIDECAR_TEST_FRAMING", "lines")
"""How tests that do not choose separate their messages: `lines` or `headers`."""

_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "VIRTUAL_ENV", "PYTHONPATH", "COVERAGE_PROCESS_CONFIG")


class Spawner:
    """Calling it spawns one sidecar. `folder` holds the data, the home and whatever else the test writes."""

    def __init__(self, folder: Path, command: list[str] = COMMAND) -> None:
        self.folder = folder
        self.command = command
        self.data_dir = folder / "data"
        self.mark = uuid.uuid4().hex
        self.sidecars: list[Sidecar] = []

    def __call__(
        self,
        *flags: str,
        model: str = "echo:",
        data_dir: Path | str | None = None,
        env: dict[str, str] | None = None,
        initialize: bool = True,
        framing: str = FRAMING,
        drain_stderr: bool = True,
        **hello: Any,
    ) -> Sidecar:
        environment = self.environment(model=model, data_dir=data_dir) | (env or {})
        sidecar = Sidecar(
            [*self.command, *flags], environment, self.folder, framing=framing, drain_stderr=drain_stderr
        )
        self.sidecars.append(sidecar)
        if initialize:
            sidecar.initialize(**hello)
        return sidecar

    def environment(self, *, model: str = "echo:", data_dir: Path | str | None = None) -> dict[str, str]:
        """Nothing of the tester's own: no keys, no home, no configuration."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return kept | {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "SIDECAR_DATA_DIR": str(data_dir or self.data_dir),
            "SIDECAR_MODEL": model,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            processes.MARK: self.mark,
        }

    def settle(self) -> None:
        """End every sidecar by EOF; raise if one broke a rule of the stream, of its outputs or of leaving."""
        offences: list[str] = []
        try:
            for sidecar in self.sidecars:
                sidecar.close_stdin()
            for sidecar in self.sidecars:
                offences += self._offences(sidecar)
        finally:
            for sidecar in self.sidecars:
                sidecar.dispose()
        offences += [f"left behind: process {pid}" for pid in processes.pids_with_mark(self.mark)]
        assert not offences, "\n".join(offences)

    def _offences(self, sidecar: Sidecar) -> list[str]:
        code = sidecar.wait(PATIENCE_S)
        offences = sidecar.referee.finish(all_answered=not sidecar.killed)
        offences += [f"no frame on stdout: {body!r:.300}" for body in sidecar.garbage]
        offences += [f"no JSON object on stderr: {line!r:.500}" for line in sidecar.stray_log_lines()]
        if code not in (0, 128 + 1, 128 + 2, 128 + 15) and not sidecar.killed:
            offences.append(f"exit code {code}: {sidecar.log_lines()[-3:]}")
        return offences
