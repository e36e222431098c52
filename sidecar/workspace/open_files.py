"""The open files of a chat: their order, their pins, and which one is evicted. Does no IO.

A path is a key here, absolute and real, as the caller found it. Does not know whether its file can be read.
Recency is the order of the set itself: clocks tie and jump backwards, so no time is compared.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..model.failures import Refused
from ..model.files import OpenFile
from ..text.suggest import did_you_mean

MAX_RECENT = 25
"""Open files that are not pinned: more than one task needs, and their list takes about 200 tokens."""

MAX_PINNED = 10
"""Pinned files are sent with every prompt: at 2,000 tokens each, this many still leave tokens for a chat."""

_QUOTED = 300  # characters of an unknown path in an error: enough to recognise it, whatever was sent
_COMPARED = 500  # paths that a misspelt one is compared with: some milliseconds


class OpenFileLimits(msgspec.Struct, frozen=True):
    max_recent: int = MAX_RECENT
    max_pinned: int = MAX_PINNED


class OpenFiles(msgspec.Struct, frozen=True):
    """The open files of one chat, the least recently touched first. Every change returns a new set."""

    files: tuple[OpenFile, ...] = ()
    limits: OpenFileLimits = OpenFileLimits()

    def opened(
        self, path: str, by: str, now: int, *, pinned: bool = False, seen: str | None = None
    ) -> OpenFiles:
        """Return the set with the file as the most recent one. Who opened it first, and its pin, stay."""
        known = self._find(path)
        if known is None:
            known = OpenFile(path=path, added_at=now, last_viewed_at=now, touch=0, opened_by=by)
        if pinned and not known.pinned:
            self._check_space_for_pin()
        file = msgspec.structs.replace(
            known,
            pinned=known.pinned or pinned,
            last_viewed_at=now,
            touch=self.files[-1].touch + 1 if self.files else 1,
            seen=known.seen if seen is None else seen,
            imported=known.imported and by != "user",
        )
        return self._with((*self._without(path), file))

    def touched(self, path: str, by: str, now: int, seen: str | None = None) -> OpenFiles:
        """Return the set after a tool or the user read the file, which opens it if needed."""
        return self.opened(path, by, now, seen=seen)

    def pinned(self, path: str, by: str, now: int) -> OpenFiles:
        """Return the set with the file pinned, and opened if needed; `precondition_failed` when all pins are
        in use."""
        return self.opened(path, by, now, pinned=True)

    def unpinned(self, path: str) -> OpenFiles:
        """Return the set without the pin; the least recent file is removed if there are now too many, which
        may be this one."""
        self._check_open(path)
        return self._with(
            tuple(
                msgspec.structs.replace(file, pinned=False) if file.path == path else file
                for file in self.files
            )
        )

    def closed(self, path: str) -> OpenFiles:
        self._check_open(path)
        return self._with(self._without(path))

    def cleared(self, keep_pinned: bool = False) -> OpenFiles:
        return self._with(tuple(file for file in self.files if keep_pinned and file.pinned))

    def opened_all(
        self, paths: Iterable[str], by: str, now: int, pin: bool
    ) -> tuple[OpenFiles, list[str], int]:
        """Return the set with as many of `paths` as fit, the first ones first, so that none evicts another of
        them; with `pin`, pinned while pins are left.

        Also returns those that were opened without the requested pin, and how many were not opened.
        """
        result, not_pinned, recent, left_out = self, list[str](), 0, 0
        for path in dict.fromkeys(paths):
            known = result._find(path)
            if known is not None and known.pinned:
                result = result.touched(path, by, now)
            elif pin and result._pins() < result.limits.max_pinned:
                result = result.pinned(path, by, now)
            elif recent < result.limits.max_recent:
                result, recent = result.touched(path, by, now), recent + 1
                if pin:
                    not_pinned.append(path)
            else:
                left_out += 1
        return result, not_pinned, left_out

    def display_order(self) -> list[OpenFile]:
        """Return the files for display: the pinned ones first, then the most recent."""
        newest_first = self.files[::-1]
        return sorted(newest_first, key=lambda file: not file.pinned)

    def seen_of(self, path: str) -> str | None:
        """Return the sha256 of the bytes that the model last saw of the file; None when it saw none."""
        file = self._find(path)
        return file.seen if file else None

    def state(self) -> list[dict[str, Any]]:
        """Return the form for the journal; `from_state` restores the same set."""
        return [{**msgspec.to_builtins(file), "pinned": file.pinned} for file in self.files]

    @staticmethod
    def from_state(state: Sequence[Any] | None, limits: OpenFileLimits) -> OpenFiles:
        """Restore the stored set; empty for a new chat.

        An unreadable entry is skipped: a missing open file is better than a chat that cannot be opened.
        """
        stored = [entry for entry in map(_parse_entry, state or ()) if entry]
        if all(entry.touch is not None for entry in stored):
            stored.sort(key=lambda entry: entry.touch or 0)
        else:
            stored = [msgspec.structs.replace(entry, touch=at) for at, entry in enumerate(stored, 1)]
        files: dict[str, OpenFile] = {}
        for entry in stored:
            files.pop(entry.path, None)
            files[entry.path] = _file(entry)
        pins = [file.path for file in files.values() if file.pinned]
        for path in pins[: max(len(pins) - limits.max_pinned, 0)]:
            files[path] = msgspec.structs.replace(files[path], pinned=False)
        return OpenFiles((), limits)._with(tuple(files.values()))

    def _with(self, files: tuple[OpenFile, ...]) -> OpenFiles:
        """Return a set of these files, in this order, without the least recent unpinned ones above the limit."""
        unpinned = [file.path for file in files if not file.pinned]
        gone = set(unpinned[: max(len(unpinned) - self.limits.max_recent, 0)])
        return OpenFiles(tuple(file for file in files if file.path not in gone), self.limits)

    def _without(self, path: str) -> tuple[OpenFile, ...]:
        return tuple(file for file in self.files if file.path != path)

    def _find(self, path: str) -> OpenFile | None:
        return next((file for file in self.files if file.path == path), None)

    def _check_open(self, path: str) -> None:
        if self._find(path) is None:
            near = nearest_path(path, [file.path for file in self.display_order()])
            remedy = f"did you mean {near}?" if near else f"{len(self.files) or 'no'} other files are"
            raise Refused(
                "not_found",
                f"{quoted_path(path)} is not open; {remedy}",
                params={"path": quoted_path(path), "nearest": near},
            )

    def _pins(self) -> int:
        return sum(file.pinned for file in self.files)

    def _check_space_for_pin(self) -> None:
        if self._pins() < self.limits.max_pinned:
            return
        pinned = [file.path for file in self.display_order() if file.pinned]
        raise Refused(
            "precondition_failed",
            f"{len(pinned)} files are pinned, which is the limit; unpin one of them first: {', '.join(pinned)}",
            params={"limit": self.limits.max_pinned, "pinned": pinned},
        )


def nearest_path(path: str, known: Sequence[str]) -> str | None:
    """The known path that was probably meant: one that ends like it, one with its name, or one spelt like it."""
    asked, name = path[:_QUOTED].lstrip("./"), posixpath.basename(path[:_QUOTED])
    for other in known:
        if asked and (other == asked or other.endswith("/" + asked)):
            return other
    for other in known:
        if name and posixpath.basename(other) == name:
            return other
    # Whole paths of one deep folder are all similar: only their names distinguish them.
    by_name = {posixpath.basename(other): other for other in reversed(known[:_COMPARED])}
    close = did_you_mean(name, by_name) if name else []
    return by_name[close[0]] if close else None


def quoted_path(path: str) -> str:
    """Return a path for an error: well-formed text of bounded length, whatever was sent."""
    return path[:_QUOTED].encode("utf-8", "backslashreplace").decode()


class _StoredEntry(msgspec.Struct, rename="camel"):
    """An entry as any version of this program may have written it."""

    path: str
    pinned: bool = False
    added_at: int = 0
    last_viewed_at: int | None = None
    touch: int | None = None
    opened_by: str = "user"
    seen: str | None = None
    imported: bool = False


def _parse_entry(entry: Any) -> _StoredEntry | None:
    try:
        return msgspec.convert(entry, _StoredEntry)
    except msgspec.ValidationError:
        return None


def _file(entry: _StoredEntry) -> OpenFile:
    viewed = entry.added_at if entry.last_viewed_at is None else entry.last_viewed_at
    return OpenFile(
        path=entry.path,
        pinned=entry.pinned,
        added_at=entry.added_at,
        last_viewed_at=viewed,
        touch=entry.touch or 0,
        opened_by=entry.opened_by,
        seen=entry.seen,
        imported=entry.imported,
    )
