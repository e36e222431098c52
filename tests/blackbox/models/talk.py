"""A sidecar and its fake provider, and what a test asks of the two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sidecar.fake_provider import FakeProvider, Recorded
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

APIS = {
    "openai-chat": "openai",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
}
"""The fake's name of an API, and the provider that speaks it."""

Json = dict[str, Any]


class Talk:
    """`table` is more of the provider's configuration. A second one goes on with the chats of the first."""

    def __init__(self, api: str, fake: FakeProvider, spawn: Spawner, folder: Path, table: str = "") -> None:
        self.api = api
        self.provider = APIS[api]
        self.model = f"{self.provider}:fake"
        self.fake = fake
        config = folder / "impatient.toml"
        config.write_text(f"[providers.{self.provider}]\ntimeout = 1\nretries = 1\n{table}\n")
        self._sent = 0
        self.sidecar: Sidecar = spawn("--config", str(config), model=self.model, env=fake.env)

    def send(self, chat: str, text: str, **params: Any) -> Json:
        self._sent += 1
        prompt = f"p{self.sidecar.pid}-{self._sent}"
        return self.sidecar.call("prompt/send", chatId=chat, promptId=prompt, text=text, **params)

    def end(self, sent: Json) -> Json:
        """The end of the turn that `send` began."""
        ended: Json = self.sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]
        return ended

    def ask(self, text: str, chat: str = "c", **params: Any) -> Json:
        return self.end(self.send(chat, text, **params))

    def turn(self, sent: Json) -> list[Json]:
        """The events of one turn, those of the chat between them."""
        events = self.sidecar.events(sent["sessionId"])
        start = next(at for at, event in enumerate(events) if event.get("turnId") == sent["turnId"])
        return events[start:]

    def text(self, sent: Json, kind: str = "message") -> str:
        """What was shown of a turn's answer, piece by piece."""
        deltas = self.sidecar.events(sent["sessionId"], f"{kind}.delta")
        return "".join(each["data"]["text"] for each in deltas if each["turnId"] == sent["turnId"])

    def items(self, sent: Json, kind: str) -> list[Json]:
        """The finished items of a kind."""
        ends = ("message.completed", "thought.completed", "tool.ended")
        ended = [event["data"]["item"] for event in self.turn(sent) if event["type"] in ends]
        return [item for item in ended if item["type"] == kind]

    @property
    def asked(self) -> list[Recorded]:
        """The requests for an answer, without those for lists of models."""
        return [
            request
            for request in self.fake.requests
            if request.method == "POST" and "show" not in request.path
        ]
