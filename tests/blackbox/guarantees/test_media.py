"""Media are checked when they arrive: what does not decode is refused, whoever sends it and by which way."""

from __future__ import annotations

import base64

import pytest

from tests.support import pictures as p
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

BAD = {
    "no image": p.block(b"hello"),
    "nothing": p.block(b""),
    "half a png": p.block(p.png(40, 40)[:-9]),
    "a damaged png": p.block(p.png()[:50] + b"!" + p.png()[51:]),
    "half a jpeg": p.block(p.jpeg()[:-4], "image/jpeg"),
    "a gif without frames": p.block(p.gif(0), "image/gif"),
    "half a webp": p.block(p.WEBP_LOSSY[:-3], "image/webp"),
    "a bomb": p.block(p.png(50_000, 50_000, pixels=b"x")),
    "svg": p.block(p.SVG, "image/svg+xml"),
    "bmp": p.block(p.BMP, "image/bmp"),
    "pdf": p.block(p.PDF, "application/pdf"),
    "heic": p.block(p.HEIC, "image/heic"),
    "sound as an image": p.block(p.wav(), "image/png"),
    "no sound": p.block(b"RIFF", "audio/wav", "audio"),
    "an image as sound": p.block(p.png(), "audio/wav", "audio"),
    "half a wav": p.block(p.wav()[:-3], "audio/wav", "audio"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("block", BAD.values(), ids=BAD)
def test_bad_media_are_refused_and_the_chat_goes_on(block: Json, sidecar: Sidecar) -> None:
    content = [{"type": "text", "text": "look"}, block]
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="bad", content=content)

    assert (refusal.code, refusal.data["params"]["field"]) == (-32602, "content[1].data")
    assert (refusal.data["reason"], refusal.data["action"]) == ("bad_media", "edit_prompt")
    assert refusal.data["params"]["expected"].startswith("a PNG" if block["type"] == "image" else "WAV")
    assert sidecar.run("hello", chatId="c")["data"]["reason"] == "end_turn"
    assert [turn["promptId"] for turn in sidecar.call("chat/history", chatId="c")["turns"]] != ["bad"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["path", "blobId"])
def test_a_path_and_a_blob_are_checked_as_well(by: str, spawn: Spawner) -> None:
    sidecar, file = spawn(), spawn.folder / "a.png"
    file.write_bytes(b"no picture")
    data = base64.b64encode(b"no picture").decode()
    where = str(file) if by == "path" else sidecar.call("blob/put", data=data, mimeType="image/png")["blobId"]
    block = {"type": "image", "mimeType": "image/png", by: where}
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="p", content=[block])

    assert (refusal.code, refusal.data["params"]["field"]) == (-32602, f"content[0].{by}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["steer", "queue", "edit"])
def test_bad_media_get_into_a_running_chat_by_no_way(how: str, spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    running = sidecar.say("hang", chatId="c")
    bad = [p.block(b"hello")]
    if how == "edit":
        sidecar.call("prompt/send", chatId="c", promptId="q", text="later")
        refusal = sidecar.refused("prompt/edit", chatId="c", promptId="q", content=bad)
        assert sidecar.call("prompt/list", chatId="c")["queue"]["items"][0]["content"][0]["text"] == "later"
    else:
        refusal = sidecar.refused("prompt/send", chatId="c", promptId="q", content=bad, delivery=how)
        assert sidecar.call("prompt/list", chatId="c")["queue"]["items"] == []
    assert refusal.data["reason"] == "bad_media"
    sidecar.call("turn/cancel", chatId="c", turnId=running["turnId"], queue="clear")


LIES = {
    "a jpeg called png": (p.jpeg(), "image/png", "image/jpeg"),
    "a png called jpeg": (p.png(), "image/jpeg", "image/png"),
    "a gif called webp": (p.gif(), "image/webp", "image/gif"),
    "a webp called text": (p.WEBP_LOSSLESS, "text/plain", "image/webp"),
    "a png of no type": (p.png(), None, "image/png"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("data", "said", "is_"), LIES.values(), ids=LIES)
def test_a_type_that_lies_is_corrected(data: bytes, said: str | None, is_: str, sidecar: Sidecar) -> None:
    block = p.block(data)
    if said:
        block["mimeType"] = said
    else:
        del block["mimeType"]
    sent = sidecar.call("prompt/send", chatId="c", promptId="p", content=[block])
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    kept = sidecar.call("chat/history", chatId="c")["turns"][0]["items"][0]["content"][0]

    assert (kept["mimeType"], kept["size"]) == (is_, len(data))


def test_the_limits_are_told_at_the_start(spawn: Spawner) -> None:
    limits = spawn(initialize=False).initialize()["limits"]
    named = ("maxImageBytes", "maxImageSide", "maxImagePixels", "maxAudioBytes")

    assert [limits[name] for name in named] == [20_971_520, 16_384, 67_108_864, 20_971_520]
