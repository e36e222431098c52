"""Images and audio over every API: a model is shown what it takes, a line stands for the rest, and no medium keeps a
chat from going on."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.models.talk import Json, Talk
from tests.support import pictures as p
from tests.support.spawner import Spawner

pytestmark = pytest.mark.sampled(2)

SEEN = "[[say=seen]]"


def send(talk: Talk, *blocks: Json, text: str = SEEN, chat: str = "c", **params: Any) -> Json:
    content = [{"type": "text", "text": text}, *blocks]
    talk._sent += 1
    prompt = f"m{talk.sidecar.pid}-{talk._sent}"
    return talk.sidecar.call("prompt/send", chatId=chat, promptId=prompt, content=content, **params)


def show(talk: Talk, *blocks: Json, **params: Any) -> str:
    """Why the turn with these blocks ended."""
    reason: str = talk.end(send(talk, *blocks, **params))["reason"]
    return reason


def left_out(talk: Talk) -> list[str]:
    """Why media were left out, as the notices tell it, in order."""
    events = [event for seen in talk.sidecar.seen().values() for event in seen if event["type"] == "notice"]
    told = [event["data"] for event in events if event["data"]["code"] == "media_left_out"]
    return [item["reason"] for data in told for item in data["params"]["items"]]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


SOUND = {"png": p.png(), "jpeg": p.jpeg(), "webp": p.WEBP_LOSSLESS, "lossy webp": p.WEBP_LOSSY}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("data", SOUND.values(), ids=SOUND)
def test_a_sound_image_of_any_declared_type_is_sent(data: bytes, talk: Talk) -> None:
    assert show(talk, p.block(data, "image/png")) == "end_turn"
    assert encoded(data) in talk.asked[-1].body.decode()
    assert (len(talk.asked), left_out(talk)) == (1, [])


@pytest.mark.sampled(1)
def test_of_an_animation_the_first_frame_is_sent(talk: Talk) -> None:
    assert show(talk, p.block(p.gif(3), "image/gif")) == "end_turn"
    sent = talk.asked[-1].body.decode()
    taken = talk.api != "gemini"
    assert (encoded(p.gif(1)) in sent, "is not shown: this model does not take image/gif" in sent) == (
        taken,
        not taken,
    )
    assert left_out(talk) == ([] if taken else ["format"])


@pytest.mark.sampled(1)
def test_a_model_without_images_gets_a_line_and_the_user_a_notice(talk: Talk) -> None:
    blind: Json = {"overrides": {"model": f"{talk.provider}:fake-blind"}}
    assert show(talk, p.block(p.png(), name="cat.png"), **blind) == "end_turn"
    assert "cat.png is not shown" in talk.asked[-1].body.decode()
    assert left_out(talk) in (["refused"], ["modality"])
    requests = len(talk.asked)
    assert talk.ask("[[say=more]]", **blind)["reason"] == "end_turn"
    assert (len(talk.asked) - requests, len(left_out(talk))) == (1, 1), "it was refused, or told, again"


@pytest.mark.sampled(1)
def test_a_chat_with_images_goes_to_a_model_without_and_back(talk: Talk) -> None:
    assert show(talk, p.block(p.png(), name="cat.png")) == "end_turn"
    blind: Json = {"overrides": {"model": f"{talk.provider}:fake-blind"}}
    assert [talk.ask("[[say=a]]", **blind)["reason"] for _ in range(2)] == ["end_turn"] * 2
    assert encoded(p.png()) not in talk.asked[-1].body.decode()
    assert talk.ask("[[say=b]]")["reason"] == "end_turn"
    assert encoded(p.png()) in talk.asked[-1].body.decode()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("provider", ["anthropic", "ollama"])
def test_a_text_model_that_is_known_is_never_sent_an_image(
    provider: str, fake: FakeProvider, spawn: Spawner
) -> None:
    """These say which of their models take images: after their list was read, no request is wasted."""
    sidecar = spawn(model=f"{provider}:fake-blind", env=fake.env)
    sidecar.call("models/list", provider=provider)
    content = [{"type": "text", "text": SEEN}, p.block(p.png())]
    sent = sidecar.call("prompt/send", chatId="c", promptId="p", content=content)
    assert sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"] == "end_turn"
    bodies = [one.body.decode() for one in fake.requests if one.path in ("/api/chat", "/v1/messages")]
    assert (len(bodies), "this model does not take image input" in bodies[0]) == (1, True)


def _spoil(folder: Path, good: bytes, bad: bytes) -> None:
    """Put other bytes under a blob's id, as a sidecar before the check would have taken them."""
    database = next(folder.rglob("*.db"))
    with sqlite3.connect(database) as db:
        (changed,) = db.execute("SELECT count(*) FROM blobs WHERE data = ?", (good,)).fetchone()
        assert changed == 1
        db.execute("UPDATE blobs SET data = ?, size = ? WHERE data = ?", (bad, len(bad), good))


OLD = {"text": b"hello", "half a png": p.png()[:-9], "nothing": b"", "a bitmap": p.BMP, "a pdf": p.PDF}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bad", OLD.values(), ids=OLD)
def test_a_bad_image_of_an_old_database_does_no_harm(
    bad: bytes, api: str, fake: FakeProvider, spawn: Spawner, tmp_path: Path
) -> None:
    talk = Talk(api, fake, spawn, tmp_path)
    assert show(talk, p.block(p.png(7, 7), name="old.png")) == "end_turn"
    talk.sidecar.close_stdin()
    talk.sidecar.wait()
    _spoil(spawn.data_dir, p.png(7, 7), bad)
    again = Talk(api, fake, spawn, tmp_path)
    again.sidecar.call("chat/open", chatId="c")
    before = len(again.asked)
    assert [again.ask(SEEN)["reason"] for _ in range(2)] == ["end_turn"] * 2
    assert len(again.asked) - before == 2, "a bad image was sent"
    assert "old.png is not shown: its bytes do not decode" in again.asked[-1].body.decode()
    assert left_out(again) == ["invalid"]


IMPORTED = {
    "bad bytes": (b"hello", {}),
    "a lying type": (p.jpeg(), {}),
    "a lying size": (p.png(), {"size": 3}),
    "no bytes": (None, {}),
    "a bomb": (p.png(60_000, 60_000, pixels=b"x"), {}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("data", "more"), IMPORTED.values(), ids=IMPORTED)
def test_an_imported_image_does_no_harm(data: bytes | None, more: Json, talk: Talk) -> None:
    assert show(talk, p.block(p.png(9, 3))) == "end_turn"
    lines = []
    for line in talk.sidecar.call("chat/export", chatId="c")["data"].splitlines():
        entry = json.loads(line)
        if "blob" in entry:
            if data is None:
                continue
            entry["blob"]["data"] = encoded(data)
        text = json.dumps(entry)
        if data is not None:
            old, new = hashlib.sha256(p.png(9, 3)).hexdigest(), hashlib.sha256(data).hexdigest()
            text = text.replace(old, new)
        if "size" in more:
            text = text.replace(f'"size": {len(p.png(9, 3))}', f'"size": {more["size"]}')
        lines.append(text)
    talk.sidecar.call("chat/delete", chatId="c")
    talk.sidecar.call("data/purge", scope="all", confirm=True)
    talk.sidecar.call("chat/import", chatId="i", data="\n".join(lines))
    before = len(talk.asked)
    assert [talk.ask(SEEN, chat="i")["reason"] for _ in range(2)] == ["end_turn"] * 2
    assert len(talk.asked) - before == 2, "what was imported was refused"
    sound = data in (p.jpeg(), p.png())
    assert (encoded(data or b"?") in talk.asked[-1].body.decode()) == sound


@pytest.mark.sampled(1)
def test_a_fork_with_an_image_goes_on_with_a_model_without(talk: Talk) -> None:
    assert show(talk, p.block(p.png())) == "end_turn"
    talk.sidecar.call("chat/fork", chatId="c", newChatId="f")
    blind: Json = {"overrides": {"model": f"{talk.provider}:fake-blind"}}
    assert [talk.ask("[[say=a]]", chat="f", **blind)["reason"] for _ in range(2)] == ["end_turn"] * 2


@pytest.mark.sampled(1)
def test_a_steered_image_reaches_the_model(talk: Talk) -> None:
    sent = talk.send("c", "[[n=40]] [[delay=20]]")
    talk.sidecar.wait_event(sent["sessionId"], lambda event: event["type"] == "message.delta")
    assert send(talk, p.block(p.png(5, 5)), delivery="steer")["disposition"] == "steered"
    assert talk.end(sent)["reason"] == "end_turn"
    assert encoded(p.png(5, 5)) in talk.asked[-1].body.decode()


@pytest.mark.sampled(1)
def test_an_image_that_the_provider_refuses_is_left_out_of_the_same_turn(talk: Talk) -> None:
    """Sound, but larger than this provider takes: no limit of ours knows that."""
    talk.fake.fault("bad_request")
    assert show(talk, p.block(p.png(6, 6), name="big.png")) == "end_turn"
    assert [encoded(p.png(6, 6)) in one.body.decode() for one in talk.asked] == [True, False]
    assert "big.png is not shown: the provider refused it" in talk.asked[-1].body.decode()
    assert [talk.ask(SEEN)["reason"] for _ in range(2)] == ["end_turn"] * 2
    assert (len(talk.asked), left_out(talk)) == (4, ["refused"])


@pytest.mark.sampled(1)
def test_a_refusal_of_media_is_known_to_two_processes(
    api: str, fake: FakeProvider, spawn: Spawner, tmp_path: Path
) -> None:
    blind: Json = {"overrides": {"model": f"{Talk(api, fake, spawn, tmp_path).provider}:fake-blind"}}
    first, second = Talk(api, fake, spawn, tmp_path), Talk(api, fake, spawn, tmp_path)
    assert show(first, p.block(p.png()), **blind) == "end_turn"
    second.sidecar.call("chat/open", chatId="c")
    assert second.ask("[[say=a]]", **blind)["reason"] == "end_turn"
    assert first.ask("[[say=b]]", **blind)["reason"] == "end_turn"


def test_audio_is_sent_where_it_is_taken_and_else_a_line(fake: FakeProvider, spawn: Spawner) -> None:
    sidecar = spawn(model="gemini:gemini-2.5-flash", env=fake.env)
    fake.vendor.prefix = "gemini"
    content = [{"type": "text", "text": SEEN}, p.block(p.ogg(), "audio/wav", "audio")]
    ends = []
    for number, model in enumerate(("gemini:gemini-2.5-flash", "anthropic:fake-1", "openai:fake-1")):
        fake.vendor.prefix = "gemini" if "gemini" in model else "fake"
        sent = sidecar.call(
            "prompt/send", chatId=f"c{number}", promptId="p", content=content, overrides={"model": model}
        )
        ends.append(sidecar.wait_turn(sent["sessionId"], sent["turnId"])["data"]["reason"])
    bodies = [one.body.decode() for one in fake.requests if one.method == "POST"]

    assert ends == ["end_turn"] * 3
    assert ['"audio/ogg"' in body for body in bodies] == [True, False, False]
    assert ["does not take audio input" in body for body in bodies] == [False, True, True]
