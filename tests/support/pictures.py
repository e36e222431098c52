"""Small valid media, and broken ones, made byte by byte."""

from __future__ import annotations

import base64
import struct
import zlib


def png(
    width: int = 2,
    height: int = 2,
    *,
    depth: int = 8,
    colour: int = 2,
    interlace: int = 0,
    pixels: bytes | None = None,
    extra: bytes = b"",
) -> bytes:
    """A PNG of zeros. `pixels` replaces the compressed rows; `extra` are chunks before them."""
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = height * (1 + -(-width * depth * samples // 8))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    body = zlib.compress(bytes(rows)) if pixels is None else pixels
    start = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra
    return start + png_chunk(b"IDAT", body) + png_chunk(b"IEND", b"")


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def jpeg(width: int = 8, height: int = 8) -> bytes:
    """A grey JPEG whose every block has the code for no coefficients."""
    quantisation = b"\xff\xdb\x00\x43\x00" + b"\x01" * 64
    frame = b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\x00"
    tables = b"".join(
        b"\xff\xc4\x00\x14" + bytes([kind]) + b"\x01" + bytes(15) + b"\x00" for kind in (0, 0x10)
    )
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\x3f"
    return b"\xff\xd8" + quantisation + frame + tables + scan + b"\xff\xd9"


def gif(frames: int = 1) -> bytes:
    head = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///w==")
    frame = base64.b64decode("IfkEAQAAAAAsAAAAAAEAAQAAAgFEAA==")
    return head + frame * frames + b";"


WEBP_LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
WEBP_LOSSY = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")


def webp_animated() -> bytes:
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\x02\x00\x00\x00" + bytes(6)
    frame = bytes(16) + WEBP_LOSSLESS[12:]
    body = b"WEBP" + canvas + b"ANIM" + struct.pack("<I", 6) + bytes(6)
    body += b"ANMF" + struct.pack("<I", len(frame)) + frame
    return b"RIFF" + struct.pack("<I", len(body)) + body


def wav(samples: int = 16) -> bytes:
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    data = b"data" + struct.pack("<I", 2 * samples) + bytes(2 * samples)
    return b"RIFF" + struct.pack("<I", 4 + len(form) + len(data)) + b"WAVE" + form + data


def mp3(frames: int = 2) -> bytes:
    """MPEG 1, Layer III, 32 kbit/s at 44.1 kHz: 104 bytes a frame."""
    return (b"\xff\xfb\x10\x00" + bytes(100)) * frames


def flac() -> bytes:
    return b"fLaC\x80\x00\x00\x22" + bytes(34) + b"\xff\xf8" + bytes(8)


def ogg() -> bytes:
    def page(body: bytes) -> bytes:
        return b"OggS" + bytes(22) + b"\x01" + bytes([len(body)]) + body

    return page(b"OpusHead" + bytes(11)) + page(b"OpusTags")


def aac() -> bytes:
    return (b"\xff\xf1\x50\x80\x01\xbf\xfc" + bytes(6)) * 2


def aiff() -> bytes:
    comm = b"COMM" + struct.pack(">I", 18) + bytes(18)
    body = b"AIFF" + comm + b"SSND" + struct.pack(">I", 16) + bytes(16)
    return b"FORM" + struct.pack(">I", len(body)) + body


SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'
BMP = b"BM" + struct.pack("<IHHI", 58, 0, 0, 54) + struct.pack("<IiiHH", 40, 1, 1, 1, 24) + bytes(28)
PDF = b"%PDF-1.4\n%%EOF"
HEIC = b"\x00\x00\x00\x18ftypheic" + bytes(12)


def block(data: bytes, mime: str = "image/png", type: str = "image", **more: str) -> dict[str, str]:
    """A content block that carries the bytes."""
    return {"type": type, "mimeType": mime, "data": base64.b64encode(data).decode(), **more}
