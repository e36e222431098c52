"""Merge the layers from defaults to the command line. Later layers win; the values of the chat and the prompt are
applied above this and are not known here.
"""

from __future__ import annotations

import os

from . import files, known
from .errors import SettingsError
from .keys import EFFECTS, KEYS, MEMORY
from .parsing import unexpected_value, unknown_key
from .values import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .files import FileScope, SettingsFile
    from .key import SettingKey, Value
    from .values import Layer, Rule

CONFIG_VARIABLE = "SIDECAR_CONFIG"


def load(
    *,
    config_file: str | None = None,
    project: str | None = None,
    environ: Mapping[str, str],
    command_line: Mapping[str, object] | None = None,
    trusted: bool = False,
) -> Settings:
    """Return the effective settings. `config_file` takes precedence over `SIDECAR_CONFIG`; options of None were not
    given.

    In the file of an untrusted project, keys that decide which code runs, or who receives the chat, are ignored with
    a warning.
    """
    user = files.read(files.user_file())
    own = None if project is None else files.read(files.project_file(project), project=True)
    named = _named_file(config_file or environ.get(CONFIG_VARIABLE))
    withheld = {} if own is None or trusted else _withheld_keys(own)

    layers: dict[str, tuple[Value, Layer]] = {name: (key.default, "default") for name, key in KEYS.items()}
    _apply_file(layers, user, "user", {})
    _apply_file(layers, own, "project", withheld)
    _apply_file(layers, named, "file", {})
    _apply_values(layers, _variables(environ), "environment")
    _apply_values(layers, command_line or {}, "command line")
    if layers["store.data_dir"][0] is None:
        layers["store.data_dir"] = (files.default_data_dir(), "default")
    rules = [*_rules(user, "user"), *_rules(named, "user"), *_rules(own, "project", withheld)]
    warnings = tuple(dict.fromkeys(withheld.values()))
    return Settings(layers, _version(user, own, named), warnings, tuple(rules))


def read_scope(scope: FileScope, project: str | None = None) -> SettingsFile:
    """Return the values of one file, as they are written; none when it is absent."""
    return files.read(files.scope_file(scope, project), project=scope == "project")


def _named_file(path: str | None) -> SettingsFile | None:
    """Return the file that the user named: unlike the others it must exist."""
    if not path:
        return None
    named = files.read(os.path.abspath(path))
    if named.version == files.ABSENT:
        hint = f"Correct `--config` or {CONFIG_VARIABLE}"
        raise SettingsError(None, "there is no such file", hint=hint, path=named.path)
    return named


def _withheld_keys(own: SettingsFile) -> dict[str, str]:
    """Return what the file of an untrusted project must not set, with a warning for each."""
    return {
        name: f"{own.path}: `{known.override_unit(name)}` is ignored until the project is trusted (`project/trust`)"
        for name in own.values
        if (key := known.find_key(name)) is not None and key.project == "trusted"
    }


def _apply_file(
    layers: dict[str, tuple[Value, Layer]],
    file: SettingsFile | None,
    layer: Layer,
    withheld: Mapping[str, str],
) -> None:
    if file is not None:
        folder = os.path.dirname(file.path)
        given = {name: value for name, value in file.values.items() if name not in withheld}
        _drop_replaced(layers, given)
        for name, value in given.items():
            key = known.find_key(name)
            assert key, name  # the file was validated when it was read
            settled = _resolved_value(key, value, folder)
            layers[name] = (_joined_lists(layers[name][0], settled) if key.adds else settled, layer)


def _drop_replaced(layers: dict[str, tuple[Value, Layer]], given: Mapping[str, Any]) -> None:
    """Drop the tables that these replace, or another server would get the secrets of one."""
    units = {unit for name in given if (unit := known.override_unit(name)) != name}
    for name in [name for name in layers if known.override_unit(name) in units]:
        del layers[name]


def _joined_lists(before: Value, more: Value) -> Value:
    assert isinstance(before, tuple)
    assert isinstance(more, tuple)
    return (*before, *more)


def _rules(
    file: SettingsFile | None, scope: FileScope, withheld: Mapping[str, str] | None = None
) -> list[Rule]:
    """Return the permission rules of one file, each with its position."""
    if file is None:
        return []
    keys = {effect: f"permissions.{effect}" for effect in EFFECTS}
    return [
        (scope, effect, text, file.path)
        for effect, key in keys.items()
        if key not in (withheld or {})
        for text in file.values.get(key, ())
    ]


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the environment sets; an empty variable counts as unset."""
    found = {key.name: environ.get(key.environment) for key in KEYS.values() if key.environment}
    return {name: value for name, value in found.items() if value}


def _apply_values(layers: dict[str, tuple[Value, Layer]], given: Mapping[str, object], layer: Layer) -> None:
    for name, value in given.items():
        if value is not None:
            layers[name] = (_resolved_value(_checked_key(name, value, layer), value, os.curdir), layer)


def _checked_key(name: str, value: object, layer: Layer) -> SettingKey:
    """Return the key, when the value is valid; otherwise the error names the variable or the command line."""
    key = KEYS.get(name)
    if key is None:
        raise unknown_key(name)
    if key.narrow(value) is None:
        error = unexpected_value(key, value, name)
        place = key.environment if layer == "environment" else layer
        error.message = f"{place}: {error.message}"
        raise error
    return key


def _resolved_value(key: SettingKey, value: Any, folder: str) -> Value:
    """Return the value as the program uses it: a path is absolute, relative to the folder of its file."""
    if key.kind == "paths":
        return tuple(_absolute(one, folder) for one in value)
    return _absolute(value, folder) if key.kind == "path" and value != MEMORY else key.narrow(value)


def _absolute(path: str, folder: str) -> str:
    return os.path.abspath(os.path.join(folder, os.path.expanduser(path)))


def _version(*read: SettingsFile | None) -> str:
    present = [
        f"{file.path}\0{file.version}" for file in read if file is not None and file.version != files.ABSENT
    ]
    return files.version_of("\0".join(present).encode(errors="surrogatepass") if present else None)
