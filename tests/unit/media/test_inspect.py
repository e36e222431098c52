"""Which media are taken, by their bytes alone, and what is said of the others."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.fake_provider.images import decode
from sidecar.media import MAX_IMAGE_BYTES, BadMedia, Facts, inspect
from sidecar.media.gif import first_frame
from tests.support import pictures as p

IMAGES = {
    "png": (p.png(3, 5), Facts("image/png", 3, 5)),
    "png with a palette": (p.png(colour=3, extra=p.png_chunk(b"PLTE", bytes(3))), Facts("image/png", 2, 2)),
    "png of 16 bits with alpha": (p.png(depth=16, colour=6), Facts("image/png", 2, 2)),
    "png of one bit": (p.png(9, 1, depth=1, colour=0), Facts("image/png", 9, 1)),
    "png with bytes behind its end": (p.png() + b"more", Facts("image/png", 2, 2)),
    "interlaced png": (p.png(9, 9, interlace=1, pixels=zlib.compress(bytes(300))), Facts("image/png", 9, 9)),
    "jpeg": (p.jpeg(8, 16), Facts("image/jpeg", 8, 16)),
    "jpeg with fill bytes": (p.jpeg().replace(b"\xff\xc0", b"\xff\xff\xc0"), Facts("image/jpeg", 8, 8)),
    "gif": (p.gif(), Facts("image/gif", 1, 1)),
    "gif without a trailer": (p.gif()[:-1], Facts("image/gif", 1, 1)),
    "animated gif": (p.gif(3), Facts("image/gif", 1, 1, True)),
    "lossless webp": (p.WEBP_LOSSLESS, Facts("image/webp", 1, 1)),
    "lossy webp": (p.WEBP_LOSSY, Facts("image/webp", 1, 1)),
    "animated webp": (p.webp_animated(), Facts("image/webp", 1, 1, True)),
}


@pytest.mark.parametrize(("data", "facts"), IMAGES.values(), ids=IMAGES)
def test_a_sound_image_is_known_by_its_bytes(data: bytes, facts: Facts) -> None:
    assert inspect(data, "image") == facts


AUDIO = {
    "audio/wav": p.wav(),
    "audio/mpeg": p.mp3(),
    "audio/flac": p.flac(),
    "audio/ogg": p.ogg(),
    "audio/aac": p.aac(),
    "audio/aiff": p.aiff(),
}


@pytest.mark.parametrize(("mime", "data"), AUDIO.items(), ids=AUDIO)
def test_sound_audio_is_known_by_its_bytes(mime: str, data: bytes) -> None:
    assert inspect(data, "audio") == Facts(mime)


def test_an_mp3_may_have_a_tag_before_it_and_one_behind() -> None:
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x05" + bytes(5)
    assert inspect(tag + bytes(7) + p.mp3(1) + b"TAG" + bytes(125), "audio") == Facts("audio/mpeg")


BROKEN = {
    "no image at all": (b"hello", "no PNG"),
    "nothing": (b"", "empty"),
    "a signature alone": (b"\x89PNG\r\n\x1a\n", "truncated"),
    "svg": (p.SVG, "XML"),
    "bare svg": (b"<svg/>", "SVG"),
    "bmp": (p.BMP, "BMP"),
    "pdf": (p.PDF, "PDF"),
    "heic": (p.HEIC, "HEIC"),
    "sound": (p.wav(), "WAV audio"),
    "half a png": (p.png(50, 50)[:-20], "truncated"),
    "a png with a flipped bit": (p.png()[:45] + b"\x00" + p.png()[46:], "checksum"),
    "a png whose pixels end early": (p.png(pixels=zlib.compress(b"\x00")), "pixel data"),
    "a png whose pixels are none": (p.png(pixels=b"no deflate"), "decompress"),
    "a png without pixels": (p.png()[:33] + p.png_chunk(b"IEND", b""), "pixel data"),
    "a png without a palette": (p.png(colour=3), "palette"),
    "a png of no known colours": (p.png(depth=3), "pixel format"),
    "a png that begins elsewhere": (p.png()[:8] + p.png_chunk(b"tEXt", b"x"), "header chunk"),
    "a bomb of a png": (p.png(60_000, 60_000, pixels=b""), "scale it down"),
    "a png of no width": (p.png(0, 7, pixels=b""), "nothing to show"),
    "a jpeg without its end": (p.jpeg()[:-2], "truncated"),
    "a jpeg cut in a segment": (p.jpeg()[:40], "truncated"),
    "a jpeg without a scan": (p.jpeg()[: p.jpeg().index(b"\xff\xda")] + b"\xff\xd9", "no pixels"),
    "a jpeg with an empty scan": (p.jpeg()[:-3] + b"\xff\xd9", "empty scan"),
    "a jpeg of no height": (p.jpeg(8, 0), "nothing to show"),
    "a jpeg that is too wide": (p.jpeg(60_000, 8), "scale it down"),
    "a gif without a frame": (p.gif(0), "no frame"),
    "half a gif": (p.gif()[:-6], "truncated"),
    "a gif header": (b"GIF89a", "truncated"),
    "half a webp": (p.WEBP_LOSSLESS[:-4], "truncated"),
    "a webp without a frame": (b"RIFF\x04\x00\x00\x00WEBP", "no frame"),
    "a webp of wrong version": (p.WEBP_LOSSLESS[:20] + b"\x00" + p.WEBP_LOSSLESS[21:], "malformed"),
    "too many bytes": (p.png() + bytes(MAX_IMAGE_BYTES), "20 MiB"),
}


@pytest.mark.parametrize(("data", "said"), BROKEN.values(), ids=BROKEN)
def test_an_image_that_does_not_decode_is_refused_with_its_fault(data: bytes, said: str) -> None:
    with pytest.raises(BadMedia, match=said):
        inspect(data, "image")


BROKEN_AUDIO = {
    "no audio at all": (b"hello", "no WAV"),
    "nothing": (b"", "empty"),
    "an image": (p.png(), "PNG image"),
    "a wav without samples": (p.wav(0), "no samples"),
    "half a wav": (p.wav()[:-10], "truncated"),
    "a wav header": (p.wav()[:12], "truncated"),
    "one cut mp3 frame": (p.mp3(1)[:50], "truncated"),
    "an mp3 frame and noise": (p.mp3(1) + b"noise here", "damaged"),
    "a tag without sound": (b"ID3\x04\x00\x00\x00\x00\x00\x02\x00\x00", "truncated"),
    "half a flac": (p.flac()[:20], "truncated"),
    "a flac without frames": (p.flac()[:42] + b"\x00\x00", "no frame"),
    "half an ogg": (p.ogg()[:-5], "truncated"),
    "an ogg of pictures": (p.ogg().replace(b"OpusHead", b"\x80theora!"), "no audio"),
    "an aiff without sound": (p.aiff()[:38], "no samples"),
    "a webm": (b"\x1aE\xdf\xa3" + bytes(20), "WebM"),
}


@pytest.mark.parametrize(("data", "said"), BROKEN_AUDIO.values(), ids=BROKEN_AUDIO)
def test_audio_without_samples_is_refused_with_its_fault(data: bytes, said: str) -> None:
    with pytest.raises(BadMedia, match=said):
        inspect(data, "audio")


WHOLE = [data for data, _ in IMAGES.values()]


@given(
    data=st.sampled_from(WHOLE), cut=st.integers(0, 400), noise=st.binary(max_size=6), at=st.integers(0, 400)
)
@example(data=p.gif(3), cut=400, noise=b"", at=0)
def test_any_damage_is_either_refused_or_harmless(data: bytes, cut: int, noise: bytes, at: int) -> None:
    """Nothing but BadMedia comes out, and what is taken a server that decodes would take, too."""
    damaged = data[:at] + noise + data[at + len(noise) : cut]
    try:
        found = inspect(damaged, "image")
    except BadMedia:
        return
    if found.animated and found.mime_type != "image/gif":
        return
    sent = first_frame(damaged) if found.mime_type == "image/gif" else damaged
    if 0 < found.width * found.height <= 8_000 * 8_000:
        decode(sent)


@given(st.sampled_from([b"", *AUDIO.values()]), st.integers(0, 300), st.binary(max_size=30))
def test_no_bytes_make_the_check_of_audio_fail_otherwise(data: bytes, cut: int, noise: bytes) -> None:
    with suppress(BadMedia):
        inspect(data[:cut] + noise, "audio")


def test_an_animation_is_cut_to_its_first_frame() -> None:
    assert first_frame(p.gif(4)) == p.gif(1) == first_frame(p.gif(1))


def test_a_bomb_is_refused_by_its_header_and_not_inflated() -> None:
    """A kilobyte for each megabyte of zeros: the header is believed before a byte is inflated."""
    bomb = p.png(16_000, 16_000, pixels=zlib.compress(bytes(1 << 24)))
    with pytest.raises(BadMedia, match="16000 x 16000 pixels"):
        inspect(bomb, "image")


def test_more_pixels_than_the_header_says_are_not_inflated() -> None:
    zeros = zlib.compress(bytes(1 << 26), 9)
    assert inspect(p.png(1, 1, pixels=zeros), "image") == Facts("image/png", 1, 1)


def test_the_sizes_of_a_large_wav_from_a_pipe_are_believed_to_the_end_of_the_file() -> None:
    piped = p.wav().replace(struct.pack("<I", 32), struct.pack("<I", 0xFFFFFFFF))
    assert inspect(piped, "audio") == Facts("audio/wav")
