"""The files that a chat has in view: their order, their pins, and which one makes room for the next. Does no IO.

A path is a key here, absolute and real, as the caller found it. Whether its file can be read is not known here.
Recency is the order of the set itself; clocks tie and jump backwards, so no time decides anything.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..model.failures import Refused
from ..model.files import OpenFile

MAX_RECENT = 25
"""Files that are open and not pinned: more than one task needs, and their list fits 200 tokens or so."""

MAX_PINNED = 10
"""Pinned files are sent with every prompt: at 2,000 tokens each, this many still leave room for a chat."""

_QUOTED = 300  # characters of an unknown path in an error: enough to recognise it, whatever was sent
_COMPARED = 500  # paths that a misspelt one is compared with: some milliseconds


class Limits(msgspec.Struct, frozen=True):
    max_recent: int = MAX_RECENT
    max_pinned: int = MAX_PINNED


class OpenFiles(msgspec.Struct, frozen=True):
    """The open files of one chat, the least recently touched first. Every change is a new set."""

    files: tuple[OpenFile, ...] = ()
    limits: Limits = Limits()

    def opened(
        self, path: str, by: str, now: int, *, pinned: bool = False, seen: str | None = None
    ) -> OpenFiles:
        """With the file as the most recent one. Who opened it first, and its pin, stay."""
        known = self._find(path)
        if known is None:
            known = OpenFile(path=path, added_at=now, last_viewed_at=now, touch=0, opened_by=by)
        if pinned and not known.pinned:
            self._check_room_for_pin()
        file = msgspec.structs.replace(
            known,
            pinned=known.pinned or pinned,
            last_viewed_at=now,
            touch=self.files[-1].touch + 1 if self.files else 1,
            seen=known.seen if seen is None else seen,
        )
        return self._with((*self._without(path), file))

    def touched(self, path: str, by: str, now: int, seen: str | None = None) -> OpenFiles:
        """A tool or the user looked at the file; one that is not open is opened by that."""
        return self.opened(path, by, now, seen=seen)

    def pinned(self, path: str, by: str, now: int) -> OpenFiles:
        """With the file pinned, and opened when it is not; `precondition_failed` when all pins are in use."""
        return self.opened(path, by, now, pinned=True)

    def unpinned(self, path: str) -> OpenFiles:
        """Without the pin; the least recent file goes when there are now too many, which may be this one."""
        self._known(path)
        return self._with(
            tuple(
                msgspec.structs.replace(file, pinned=False) if file.path == path else file
                for file in self.files
            )
        )

    def closed(self, path: str) -> OpenFiles:
        self._known(path)
        return self._with(self._without(path))

    def cleared(self, keep_pinned: bool = False) -> OpenFiles:
        return self._with(tuple(file for file in self.files if keep_pinned and file.pinned))

    def opened_all(
        self, paths: Iterable[str], by: str, now: int, pin: bool
    ) -> tuple[OpenFiles, list[str], int]:
        """With as many of `paths` as there is room for, the first ones first, so that none drives out another
        of them; with `pin`, pinned while there are pins left.

        Also gives those that were opened without the pin that was asked for, and how many were not opened.
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

    def listed(self) -> list[OpenFile]:
        """For people and models: the pinned ones first, then the most recent."""
        newest_first = self.files[::-1]
        return sorted(newest_first, key=lambda file: not file.pinned)

    def seen_of(self, path: str) -> str | None:
        """The sha256 of the bytes that the model last saw of the file; None when it saw none."""
        file = self._find(path)
        return file.seen if file else None

    def state(self) -> list[dict[str, Any]]:
        """What the journal keeps; `from_state` makes the same set of it."""
        return [{**msgspec.to_builtins(file), "pinned": file.pinned} for file in self.files]

    @staticmethod
    def from_state(state: Sequence[Any] | None, limits: Limits) -> OpenFiles:
        """The set that was kept; of a new chat none was, and its set is empty.

        An entry that cannot be read is left out: one file less in view is better than a chat that does not open.
        """
        stored = [entry for entry in map(_stored, state or ()) if entry]
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
        """These files, in this order, without the least recent unpinned ones that are too many."""
        unpinned = [file.path for file in files if not file.pinned]
        gone = set(unpinned[: max(len(unpinned) - self.limits.max_recent, 0)])
        return OpenFiles(tuple(file for file in files if file.path not in gone), self.limits)

    def _without(self, path: str) -> tuple[OpenFile, ...]:
        return tuple(file for file in self.files if file.path != path)

    def _find(self, path: str) -> OpenFile | None:
        return next((file for file in self.files if file.path == path), None)

    def _known(self, path: str) -> None:
        if self._find(path) is None:
            near = nearest(path, [file.path for file in self.listed()])
            remedy = f"did you mean {near}?" if near else f"{len(self.files) or 'no'} other files are"
            raise Refused(
                "not_found",
                f"{quoted(path)} is not open; {remedy}",
                params={"path": quoted(path), "nearest": near},
            )

    def _pins(self) -> int:
        return sum(file.pinned for file in self.files)

    def _check_room_for_pin(self) -> None:
        if self._pins() < self.limits.max_pinned:
            return
        pinned = [file.path for file in self.listed() if file.pinned]
        raise Refused(
            "precondition_failed",
            f"{len(pinned)} files are pinned, and no more can be; unpin one of them first: {', '.join(pinned)}",
            params={"limit": self.limits.max_pinned, "pinned": pinned},
        )


def nearest(path: str, known: Sequence[str]) -> str | None:
    """The known path that was probably meant: one that ends like it, one with its name, or one spelt like it."""
    from difflib import get_close_matches

    asked, name = path[:_QUOTED].lstrip("./"), posixpath.basename(path[:_QUOTED])
    for other in known:
        if asked and (other == asked or other.endswith("/" + asked)):
            return other
    for other in known:
        if name and posixpath.basename(other) == name:
            return other
    # Whole paths of one deep folder are all alike: only their names tell them apart.
    by_name = {posixpath.basename(other): other for other in reversed(known[:_COMPARED])}
    close = get_close_matches(name, by_name, n=1) if name else []
    return by_name[close[0]] if close else None


def quoted(path: str) -> str:
    """A path in an error: well-formed text of bounded length, whatever was sent."""
    return path[:_QUOTED].encode("utf-8", "backslashreplace").decode()


class _Stored(msgspec.Struct, rename="camel"):
    """An entry as any version of ours may have written it."""

    path: str
    pinned: bool = False
    added_at: int = 0
    last_viewed_at: int | None = None
    touch: int | None = None
    opened_by: str = "user"
    seen: str | None = None


def _stored(entry: Any) -> _Stored | None:
    try:
        return msgspec.convert(entry, _Stored)
    except msgspec.ValidationError:
        return None


def _file(entry: _Stored) -> OpenFile:
    viewed = entry.added_at if entry.last_viewed_at is None else entry.last_viewed_at
    return OpenFile(
        path=entry.path,
        pinned=entry.pinned,
        added_at=entry.added_at,
        last_viewed_at=viewed,
        touch=entry.touch or 0,
        opened_by=entry.opened_by,
        seen=entry.seen,
    )
