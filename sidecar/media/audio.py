"""Audio: detects the format by its signature and walks the container to the samples."""

from __future__ import annotations

import struct

from .formats import MAX_AUDIO_BYTES, BadMedia, Facts, check_size, truncated, unsupported

WANTED = "WAV, MP3, FLAC, Ogg, AAC or AIFF audio"

_MP3_KBITS = {
    3: (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Layer III bit rates of MPEG 1 (3), and of MPEG 2 and 2.5 (2), from index 1 on."""

_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}

_UNKNOWN_SIZE = 0xFFFF_FF00
"""A WAV that was written into a pipe has at least this as its length, which means the rest of the file."""


def inspect_audio(data: bytes) -> Facts:
    """Return the type of the audio; raise BadMedia when the samples are missing."""
    check_size(len(data), MAX_AUDIO_BYTES)
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _wav(data)
    if data[:4] == b"FORM" and data[8:12] in (b"AIFF", b"AIFC"):
        return _aiff(data)
    if data[:4] == b"fLaC":
        return _flac(data)
    if data[:4] == b"OggS":
        return _ogg(data)
    if _adts_length(data, 0):
        return _aac(data)
    if data[:3] == b"ID3" or _mp3_length(data, 0):
        return _mp3(data)
    raise unsupported(data, WANTED)


def _wav(data: bytes) -> Facts:
    has_format, at = False, 12
    while at + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, at)
        if kind == b"data":
            if not has_format:
                raise BadMedia("the WAV has samples before their format; save it again")
            if not length or at + 8 == len(data):
                raise BadMedia("the WAV has no samples; record it again")
            if at + 8 + length > len(data) and length < _UNKNOWN_SIZE:
                raise truncated("WAV")
            return Facts("audio/wav")
        if kind == b"fmt ":
            has_format = length >= 16 and at + 24 <= len(data)
        at += 8 + length + (length & 1)
    raise truncated("WAV")


def _aiff(data: bytes) -> Facts:
    has_format, at = False, 12
    while at + 8 <= len(data):
        kind, length = struct.unpack_from(">4sI", data, at)
        if at + 8 + length > len(data):
            raise truncated("AIFF")
        if kind == b"COMM":
            has_format = length >= 18
        elif kind == b"SSND" and length > 8 and has_format:
            return Facts("audio/aiff")
        at += 8 + length + (length & 1)
    raise BadMedia("the AIFF has no samples; save it again")


def _flac(data: bytes) -> Facts:
    at, last = 4, False
    while not last:
        if at + 4 > len(data):
            raise truncated("FLAC")
        last, kind = bool(data[at] & 0x80), data[at] & 0x7F
        length = int.from_bytes(data[at + 1 : at + 4], "big")
        if at == 4 and (kind != 0 or length != 34):
            raise BadMedia("the FLAC has no stream header; save it again")
        at += 4 + length
    if at + 2 > len(data):
        raise truncated("FLAC")
    if data[at] != 0xFF or data[at + 1] & 0xFC != 0xF8:
        raise BadMedia("the FLAC has no frame; save it again")
    return Facts("audio/flac")


def _ogg(data: bytes) -> Facts:
    at = pages = 0
    while at + 27 <= len(data) and data[at : at + 4] == b"OggS":
        segments = data[at + 26]
        lengths = data[at + 27 : at + 27 + segments]
        end = at + 27 + segments + sum(lengths)
        if len(lengths) < segments or end > len(data):
            raise truncated("Ogg")
        if not pages and not any(
            mark in data[at:end] for mark in (b"OpusHead", b"\x01vorbis", b"\x7fFLAC", b"Speex")
        ):
            raise BadMedia(f"the Ogg holds no audio; send {WANTED}")
        at, pages = end, pages + 1
    if pages < 2:
        raise truncated("Ogg")
    return Facts("audio/ogg")


def _aac(data: bytes) -> Facts:
    second = _adts_length(data, 0)
    if second < len(data) and not _adts_length(data, second):
        raise BadMedia("the AAC is damaged after its first frame; save it again")
    if second > len(data):
        raise truncated("AAC")
    return Facts("audio/aac")


def _adts_length(data: bytes, at: int) -> int:
    """Return the length of the ADTS frame that begins here; 0 when none does."""
    if at + 7 > len(data) or data[at] != 0xFF or data[at + 1] & 0xF6 != 0xF0:
        return 0
    length = (data[at + 3] & 3) << 11 | data[at + 4] << 3 | data[at + 5] >> 5
    return length if length > 7 and data[at + 2] >> 2 & 15 < 13 else 0


def _mp3(data: bytes) -> Facts:
    at = 0
    if data[:3] == b"ID3":
        if len(data) < 10:
            raise truncated("MP3")
        size = 0
        for byte in data[6:10]:
            size = size << 7 | byte & 0x7F
        padded = data[10 + size :]
        at = len(data) - len(padded.lstrip(b"\x00"))
    length = _mp3_length(data, at)
    if not length:
        raise truncated("MP3") if at >= len(data) else BadMedia("the MP3 has no frame; save it again")
    after = at + length
    if after > len(data):
        raise truncated("MP3")
    if after + 4 <= len(data) and not _mp3_length(data, after) and data[after : after + 3] != b"TAG":
        raise BadMedia("the MP3 is damaged after its first frame; save it again")
    return Facts("audio/mpeg")


def _mp3_length(data: bytes, at: int) -> int:
    """Return the length of the Layer III frame that begins here; 0 when none does."""
    if at + 4 > len(data) or data[at] != 0xFF or data[at + 1] & 0xE6 != 0xE2:
        return 0
    version, rate, index = data[at + 1] >> 3 & 3, data[at + 2] >> 2 & 3, data[at + 2] >> 4
    if version == 1 or rate == 3 or not 1 <= index <= 14:
        return 0
    kbits = _MP3_KBITS[3 if version == 3 else 2][index - 1]
    factor = 144 if version == 3 else 72
    return factor * kbits * 1000 // _MP3_RATES[version][rate] + (data[at + 2] >> 1 & 1)
