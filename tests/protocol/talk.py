"""One side of a conversation with a real sidecar, written down as it goes."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.frames import encode
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .transcripts import HOME, Json

QUIET_S = 0.25
"""A sidecar that has said nothing for so long has said all that a step makes it say."""


class Talk:
    """One conversation while it is recorded. Each step waits until the sidecar is quiet again."""

    def __init__(self, spawner: Spawner) -> None:
        self.lines: list[Json] = []
        self._spawner = spawner
        self._sidecar: Sidecar | None = None
        self._taken = 0

    @property
    def sidecar(self) -> Sidecar:
        assert self._sidecar is not None, "a conversation begins with start()"
        return self._sidecar

    def start(
        self, model: str = "echo:", framing: str = "lines", files: dict[str, str] | None = None
    ) -> None:
        """Start a process; the one before it, if any, leaves first, and the data stay."""
        self.stop()
        for name, text in (files or {}).items():
            (self._spawner.folder / name).write_text(text, "utf-8")
        setup: Json = {"from": "setup", "model": model, "framing": framing}
        self.lines.append(setup | ({"files": files} if files else {}))
        real = model.replace(HOME, str(self._spawner.folder))
        self._sidecar = self._spawner(model=real, framing=framing, initialize=False)
        self._sidecar.referee.lenient = True
        self._taken = 0

    def stop(self) -> None:
        if self._sidecar:
            self._sidecar.close_stdin()
            self._sidecar.wait()
            self._take()

    def hello(self) -> Json:
        client = {"name": "my-app", "version": "1.0"}
        return self.call("initialize", protocol="sidecar", versions=[1], client=client)

    def call(self, method: str, **params: Any) -> Json:
        """Ask, wait for the answer and for quiet. The result, or the error."""
        id = self.sidecar.ask(method, **self._spell_home(params))
        self._said({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        answer = self.sidecar.answer(id)
        self._settle()
        answered: Json = answer["result"] if "result" in answer else answer["error"]
        return answered

    def notify(self, method: str, **params: Any) -> None:
        self._said({"jsonrpc": "2.0", "method": method, "params": params})
        self.sidecar.notify(method, **params)
        self._settle()

    def raw(self, text: str) -> None:
        """A frame that is no message."""
        self.lines.append({"from": "client", "raw": text})
        self.sidecar.send_bytes(encode(text.encode(), self.sidecar.framing))
        self._settle()

    def _said(self, message: Json) -> None:
        self.lines.append({"from": "client", "message": message})

    def _spell_home(self, params: Json) -> Json:
        spelled: Json = json.loads(json.dumps(params).replace(HOME, str(self._spawner.folder)))
        return spelled

    def _settle(self) -> None:
        seen = -1
        while seen != len(self.sidecar.frames):
            seen = len(self.sidecar.frames)
            time.sleep(QUIET_S)
        self._take()

    def _take(self) -> None:
        frames = self.sidecar.frames[self._taken :]
        self._taken += len(frames)
        kept = [frame for frame in frames if not _is_noise(frame)]
        self.lines += [{"from": "sidecar", "message": frame} for frame in kept]


def _is_noise(frame: Json) -> bool:
    """`status` comes at any moment, so that it has no place in a conversation."""
    return frame.get("method") == "status"
