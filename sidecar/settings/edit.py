"""Change a settings file: comments, order and line ends stay, an invalid value is never written, and a reader sees
the old file or the new one, nothing between. Knows nothing of layers.
"""

from __future__ import annotations

import os
import stat

from ..system.lazy import lazy_module
from . import files, parsing
from .errors import SettingsConflict, SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from typing import Any

    import tomlkit
    from tomlkit import exceptions as tomlkit_errors

    from ..system import files as system_files
    from .files import FileScope
else:
    system_files = lazy_module("sidecar.system.files")
    tomlkit = lazy_module("tomlkit")
    tomlkit_errors = lazy_module("tomlkit.exceptions")

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def write_settings(
    scope: FileScope,
    project: str | None,
    changes: Mapping[str, object | None],
    expected_version: str | None = None,
) -> None:
    """Set dotted keys in the file of the scope; None removes one, also an unknown one.

    Raises SettingsConflict when the file is not the expected one or changes meanwhile, and SettingsError for an
    invalid value; the file is then unchanged.
    """
    in_project = scope == "project"
    path = _target(scope, project)
    before = files.read_bytes(path)
    if expected_version is not None and expected_version != files.version_of(before):
        raise _conflict(path)
    for name, value in changes.items():
        if value is not None:
            parsing.check(name, value, project=in_project)
    text = files.decode(path, before or b"")
    after = apply_changes(path, text, changes)
    parsing.parse(path, after, project=in_project)
    if after != text:
        _replace(scope, path, before, files.check_size(path, after.encode()))


def _target(scope: FileScope, project: str | None) -> str:
    """Return the file to write. A link of the user (dotfiles) is followed; that of a project could lead anywhere."""
    path = files.scope_file(scope, project)
    if scope == "user":
        return os.path.realpath(path)
    for part in (os.path.dirname(path), path):
        if os.path.islink(part):
            raise SettingsError(
                None, "is a link, and is not written through", hint="Put a file in its place", path=part
            )
    return path


def apply_changes(path: str, text: str, changes: Mapping[str, object | None]) -> str:
    """Return the text with the changes; it must parse as the old one with just these changes."""
    newline = "\r\n" if "\r\n" in text else "\n"
    # The same changes on plain dictionaries say what the edited text must parse to: tomlkit keeps
    # comments, and may misplace a key of a dotted table.
    expected = parsing.parse_toml(path, text)
    _apply(path, expected, changes, dict)
    after = _edit_document(path, text.replace("\r\n", "\n"), changes).replace("\n", newline)
    if _without_empty_tables(parsing.parse_toml(path, after)) != _without_empty_tables(expected):
        raise SettingsError(
            None, "cannot be changed without touching other keys", hint="Edit it by hand", path=path
        )
    return after


def _without_empty_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Drop empty tables: whether one without keys stays in the file is up to tomlkit."""
    solid = {
        name: _without_empty_tables(value) if isinstance(value, dict) else value
        for name, value in tables.items()
    }
    return {name: value for name, value in solid.items() if value != {}}


def _edit_document(path: str, text: str, changes: Mapping[str, object | None]) -> str:
    try:
        document = tomlkit.parse(text if text.endswith("\n") or not text else text + "\n")
        _apply(path, document, changes, tomlkit.table)
        return tomlkit.dumps(document)
    except tomlkit_errors.TOMLKitError as error:
        raise SettingsError(None, f"cannot be changed: {error}", hint="Edit it by hand", path=path) from error


def _apply(
    path: str,
    tables: MutableMapping[str, Any],
    changes: Mapping[str, object | None],
    new_table: Callable[[], Any],
) -> None:
    for name, value in changes.items():
        *parents, last = name.split(".")
        table = _find_table(path, tables, parents, new_table if value is not None else None)
        if value is not None:
            table[last] = value
        else:
            table.pop(last, None)


def _find_table(path: str, table: Any, parents: list[str], new_table: Callable[[], Any] | None) -> Any:
    """Return the table that holds a key; a missing one is created, or replaced by a temporary one when `new_table` is
    None.
    """
    for name in parents:
        if name not in table:
            if new_table is None:
                return {}
            table[name] = new_table()
        table = table[name]
        if not isinstance(table, dict):
            raise SettingsError(name, f"expected the table [{name}], found a value", path=path)
    return table


def _replace(scope: FileScope, path: str, before: bytes | None, after: bytes) -> None:
    """Replace the file atomically and durably, unless another process has written it."""
    temporary = f"{path}.{os.urandom(6).hex()}.tmp"
    try:
        _make_folder(scope, os.path.dirname(path))
        _write_whole(
            temporary, after, PRIVATE_FILE if before is None else stat.S_IMODE(os.stat(path).st_mode)
        )
        # As late as possible. Between this look and the rename another program could still write; a lock
        # would not stop an editor.
        if files.read_bytes(path) != before:
            raise _conflict(path)
        os.replace(temporary, path)
        system_files.sync_folder(os.path.dirname(path))
    except OSError as error:
        hint = "Check its permissions and the space on the disk"
        raise SettingsError(None, f"cannot be written ({error.strerror})", hint=hint, path=path) from error
    finally:
        _remove(temporary)


def _make_folder(scope: FileScope, folder: str) -> None:
    """Create the user's configuration folder; a missing project is not created."""
    if scope == "user":
        os.makedirs(folder, PRIVATE_FOLDER, exist_ok=True)
    elif not os.path.isdir(folder):
        os.mkdir(folder, PRIVATE_FOLDER)


def _write_whole(path: str, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.chmod(path, mode)
        os.fsync(fd)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # It was renamed, or never created.


def _conflict(path: str) -> SettingsConflict:
    return SettingsConflict(
        None, "has changed since it was read", hint="Read it again and repeat the change", path=path
    )
