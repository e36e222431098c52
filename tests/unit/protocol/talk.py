"""One side of a conversation with a real sidecar, written down as it goes."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.frames import encode
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .transcripts import HOME, Json, lay_out

QUIET_S = 0.25
"""A sidecar that has said nothing for so long has said all that a step makes it say."""


class Talk:
    """One conversation while it is recorded. Each step waits until the sidecar is quiet again."""

    def __init__(self, spawner: Spawner) -> None:
        self.lines: list[Json] = []
        self._spawner = spawner
        self._sidecar: Sidecar | None = None
        self._taken = 0
        self._asked: list[Any] = []

    @property
    def sidecar(self) -> Sidecar:
        assert self._sidecar is not None, "a conversation begins with start()"
        return self._sidecar

    def start(
        self,
        model: str = "echo:",
        framing: str = "lines",
        files: dict[str, str] | None = None,
        repository: str | None = None,
    ) -> None:
        """Start a process; the one before it, if any, leaves first, and the data stay."""
        self.stop()
        setup: Json = {"from": "setup", "model": model, "framing": framing}
        more = {"files": files, "repository": repository}
        setup |= {name: value for name, value in more.items() if value}
        lay_out(self._spawner.folder, setup)
        self.lines.append(setup)
        real = model.replace(HOME, str(self._spawner.folder))
        self._sidecar = self._spawner(model=real, framing=framing, initialize=False)
        self._sidecar.referee.lenient = True
        self._taken, self._asked = 0, []

    def stop(self) -> None:
        if self._sidecar:
            self._sidecar.close_stdin()
            self._sidecar.wait()
            self._take()

    def hello(self, **more: Any) -> Json:
        client = {"name": "my-app", "version": "1.0"}
        return self.call("initialize", protocol="sidecar", versions=[1], client=client, **more)

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

    def run(self, text: str, **params: Any) -> Json:
        """Send a prompt that nobody has to be asked for, and wait for the end of its turn."""
        return self.ended(self.call("prompt/send", **params, text=text))

    def ended(self, sent: Json) -> Json:
        """Wait for the end of the turn that a prompt began; what `prompt/send` answered comes back."""
        self.sidecar.wait_turn(sent["sessionId"], sent["turnId"])
        self._settle()
        return sent

    def asked(self, method: str) -> Json:
        """Wait for the next request of the sidecar, and for quiet. Its parameters."""
        request = self.sidecar.wait_asked(
            method, skip=sum(asked["method"] == method for asked in self._asked)
        )
        self._asked.append(request)
        self._settle()
        params: Json = request["params"]
        return params

    def reply(self, **result: Any) -> None:
        """Answer what was asked last."""
        self._answer({"result": result})

    def fail(self, code: int, message: str) -> None:
        """Answer what was asked last by an error."""
        self._answer({"error": {"code": code, "message": message}})

    def outside(self, files: dict[str, str]) -> None:
        """Somebody else writes files."""
        line = {"from": "outside", "files": files}
        lay_out(self._spawner.folder, line)
        self.lines.append(line)

    def raw(self, text: str) -> None:
        """A frame that is no message."""
        self.lines.append({"from": "client", "raw": text})
        self.sidecar.send_bytes(encode(text.encode(), self.sidecar.framing))
        self._settle()

    def _answer(self, outcome: Json) -> None:
        message = {"jsonrpc": "2.0", "id": self._asked[-1]["id"], **outcome}
        self._said(message)
        self.sidecar.send(self._spell_home(message))
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
