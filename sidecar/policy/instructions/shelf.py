"""The rules of one scope while they are read: each file as a rule, or as what is wrong with it; bounded.

Knows nothing of how a file is opened: `Read` gives its bytes, raises FileNotFoundError when it is not there,
and `Malformed` when it may not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256

from ...workspace.paths import Entry
from .imports import Imported, imported
from .parsing import CURSOR_ENDINGS, OWN_ENDINGS, Format, parsed, stem
from .rule import Instruction, Malformed, Scope

MAX_FILE = 64 * 1024
"""Bytes of one file, and of all that it imports: some 16,000 tokens, more than a prompt has room for."""

MAX_FILES = 200
"""Of the project, and of the user."""

MAX_DEPTH = 8
"""Folders within a folder of rules."""

MAX_RULE_FOLDERS = 200
"""Folders looked into beneath one folder of rules; people have a handful."""

_ENDINGS = {"cursor": CURSOR_ENDINGS, "own": OWN_ENDINGS}

Read = Callable[[str], bytes]
Load = Callable[[str], str | None]


class Shelf:
    def __init__(self, scope: Scope, read: Read) -> None:
        self.rules: list[Instruction] = []
        self._scope = scope
        self._read = read
        self._files = 0

    def add(self, path: str, format: Format, folder: str = "", load: Load | None = None) -> bool:
        """Whether there is such a file. `load` finds what it imports."""
        try:
            data = self._bytes(path)
            self.rules.append(self._rule(path, data, format, folder, load))
        except FileNotFoundError:
            return False
        except Malformed as error:
            self.problem(path, str(error), folder)
        return True

    def add_all(
        self, levels: Iterable[tuple[str, list[Entry]]], format: Format, folder: str = "", deep: int = 0
    ) -> None:
        """What a walk shows, from a folder of rules down, which lies `deep` names deep itself. The walk does not enter
        what is taken out of its lists."""
        for count, (place, entries) in enumerate(levels):
            if count == MAX_RULE_FOLDERS:
                self.problem(
                    place, f"only {MAX_RULE_FOLDERS} folders of rules are read: this one is not", folder
                )
                return
            for entry in entries:
                path = f"{place}/{entry.name}"
                if entry.kind == "folder" or not _is_rule(entry.name, format):
                    continue
                if self._files > MAX_FILES:
                    return
                if not self.add(path, format, folder) and entry.kind == "link":
                    self.problem(path, "the link leads to nothing", folder)
            if place.count("/") - deep >= MAX_DEPTH:
                folders = [entry.name for entry in entries if entry.kind == "folder"]
                entries.clear()
                for name in folders:
                    self.problem(f"{place}/{name}", f"rules lie at most {MAX_DEPTH} folders deep", folder)

    def problem(self, path: str, words: str, folder: str = "") -> None:
        shown = path.encode("utf-8", "backslashreplace").decode()
        name = stem(shown.rpartition("/")[2])
        self.rules.append(Instruction(shown, name, self._scope, folder=folder, problem=words))

    def _bytes(self, path: str) -> bytes:
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise Malformed("its name is not UTF-8: rename it") from error
        if self._files > MAX_FILES:
            raise FileNotFoundError(path)  # the first one too many has said so
        try:
            data = self._read(path)
        except Malformed:
            self._files += 1
            raise
        self._files += 1
        if self._files > MAX_FILES:
            raise Malformed(f"{MAX_FILES} files with rules are read: this one and those after it are not")
        return data

    def _rule(self, path: str, data: bytes, format: Format, folder: str, load: Load | None) -> Instruction:
        file = path.rpartition("/")[2]
        said = parsed(file, data, format)
        whole = Imported(said.text) if load is None else imported(said.text, load)
        return Instruction(
            path,
            said.name or (file if format == "plain" else stem(file)),
            self._scope,
            applies=said.applies,
            globs=said.globs,
            words=said.words,
            text=whole.text,
            priority=said.priority,
            metadata=said.metadata,
            handler=said.handler,
            folder=folder,
            template=format == "own",
            notes=whole.notes,
            hash=sha256(data + b"\0" + whole.text.encode()).hexdigest(),
        )


def _is_rule(name: str, format: Format) -> bool:
    """By its ending; a hidden file is an editor's or a file manager's."""
    return not name.startswith(".") and name.lower().endswith(_ENDINGS[format])
