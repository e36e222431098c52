"""The rules of one scope while they are read: each file as a rule, or as an error; bounded.

Does not know how a file is opened: `ReadBytes` returns its bytes, raises FileNotFoundError when it does not exist, and
`MalformedRule` when it must not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256

from ...model import FileScope
from ...text.surrogates import is_well_formed
from ...workspace.paths import FolderEntry
from .imports import ExpandedText, expand_imports
from .parsing import CURSOR_ENDINGS, OWN_ENDINGS, Format, parse_rule, stem
from .rule import Instruction, MalformedRule, ProblemCode

MAX_FILE_BYTES = 64 * 1024
"""Bytes of one file, and of all its imports: some 16,000 tokens, more than fits in a prompt."""

MAX_FILES = 200
"""Files of the project, and of the user."""

MAX_DEPTH = 8
"""Nested folders in a folder of rules."""

MAX_RULE_FOLDERS = 200
"""Folders that are read in one folder of rules; people have a handful."""

_ENDINGS = {"cursor": CURSOR_ENDINGS, "own": OWN_ENDINGS}

ReadBytes = Callable[[str], bytes]
LoadImport = Callable[[str], str | None]


class RuleCache:
    def __init__(self, scope: FileScope, read: ReadBytes) -> None:
        self.rules: list[Instruction] = []
        self._scope = scope
        self._read = read
        self._files = 0

    def add(self, path: str, format: Format, folder: str = "", load: LoadImport | None = None) -> bool:
        """Add a file and return whether it exists. `load` reads its imports."""
        try:
            data = self._bytes(path)
            self.rules.append(self._rule(path, data, format, folder, load))
        except FileNotFoundError:
            return False
        except MalformedRule as error:
            self.problem(path, str(error), error.code, folder)
        return True

    def add_all(
        self, levels: Iterable[tuple[str, list[FolderEntry]]], format: Format, folder: str = "", deep: int = 0
    ) -> None:
        """Add the files of a walk through a folder of rules, which is `deep` levels deep itself. The walk does not
        enter folders that are removed from its lists.
        """
        for count, (place, entries) in enumerate(levels):
            if count == MAX_RULE_FOLDERS:
                words = f"only {MAX_RULE_FOLDERS} folders of rules are read: this one is not"
                self.problem(place, words, "too_many", folder)
                return
            for entry in entries:
                path = f"{place}/{entry.name}"
                if entry.kind == "folder" or not _is_rule(entry.name, format):
                    continue
                if self._files > MAX_FILES:
                    return
                if not self.add(path, format, folder) and entry.kind == "link":
                    self.problem(path, "the link leads to nothing", "missing", folder)
            if place.count("/") - deep >= MAX_DEPTH:
                folders = [entry.name for entry in entries if entry.kind == "folder"]
                entries.clear()
                for name in folders:
                    words = f"rules lie at most {MAX_DEPTH} folders deep"
                    self.problem(f"{place}/{name}", words, "too_many", folder)

    def problem(self, path: str, words: str, code: ProblemCode, folder: str = "") -> None:
        shown = path.encode("utf-8", "backslashreplace").decode()
        name = stem(shown.rpartition("/")[2])
        broken = Instruction(shown, name, self._scope, folder=folder, problem=words, problem_code=code)
        self.rules.append(broken)

    def _bytes(self, path: str) -> bytes:
        if not is_well_formed(path):
            raise MalformedRule("its name is not UTF-8: rename it", "unreadable")
        if self._files > MAX_FILES:
            raise FileNotFoundError(path)  # the first file over the limit has reported it
        try:
            data = self._read(path)
        except MalformedRule:
            self._files += 1
            raise
        self._files += 1
        if self._files > MAX_FILES:
            words = f"{MAX_FILES} files with rules are read: this one and those after it are not"
            raise MalformedRule(words, "too_many")
        return data

    def _rule(
        self, path: str, data: bytes, format: Format, folder: str, load: LoadImport | None
    ) -> Instruction:
        file = path.rpartition("/")[2]
        said = parse_rule(file, data, format)
        whole = ExpandedText(said.text) if load is None else expand_imports(said.text, load)
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
    """Return whether the suffix is that of a rule; a hidden file is an editor's or a file manager's."""
    return not name.startswith(".") and name.lower().endswith(_ENDINGS[format])
