"""Which files of agents `sidecar connect` has written, for which agents, and what it wrote."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TypedDict

from sidecar.adapters.connections import FileEdit
from sidecar.settings.files import default_data_dir


class _Entry(TypedDict):
    written: str
    created: bool
    users: list[str]


class ConnectionRecord:
    """`written` is the hash of the text that was written, `created` whether there was no file before, and `users` are
    the agents that were connected by the file.
    """

    def __init__(self) -> None:
        self._path = os.path.join(
            os.environ.get("SIDECAR_DATA_DIR") or default_data_dir(), "connections.json"
        )
        try:
            self._entries: dict[str, _Entry] = json.loads(Path(self._path).read_text())
        except (OSError, ValueError):
            self._entries = {}

    def is_ours(self, path: str, text: str) -> bool:
        """Whether the file still has the text that was written."""
        return path in self._entries and self._entries[path].get("written") == _hash(text)

    def was_created(self, path: str) -> bool:
        return path in self._entries and self._entries[path].get("created") is True

    def users(self, path: str) -> set[str]:
        return set(self._entries[path].get("users", [])) if path in self._entries else set()

    def note(self, edit: FileEdit, platform: str, *, remove: bool) -> None:
        """Record what was written, or that nothing had to be."""
        path, known = edit.path, self._entries.get(edit.path)
        users = self.users(path) - {platform} if remove else self.users(path) | {platform}
        if not users or edit.after is None:
            self._entries.pop(path, None)
        elif edit.changes or known is None:
            again = edit.before is not None and self.is_ours(path, edit.before)
            created = self.was_created(path) if again else edit.before is None
            self._entries[path] = {
                "written": _hash(edit.after),
                "created": created,
                "users": sorted(users),
            }
        else:
            self._entries[path] = {**known, "users": sorted(users)}
        self._save()

    def _save(self) -> None:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        temporary = f"{self._path}.tmp"
        Path(temporary).write_text(json.dumps(self._entries, indent=1))
        os.replace(temporary, self._path)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
