"""From defaults to the command line: which layer's value is in force. Later layers win; the chat's and the
prompt's own values lie above and are not known here."""

from __future__ import annotations

import os

from . import files, known
from .errors import SettingsError
from .keys import EFFECTS, KEYS, MEMORY
from .parsing import unexpected, unknown
from .values import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .files import Scope, SettingsFile
    from .key import Key, Value
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
    """The settings in force. `config_file` goes before `SIDECAR_CONFIG`; options of None were not given.

    Of an untrusted project's file, what decides over running code is left aside with a warning.
    """
    user = files.read(files.user_file())
    own = None if project is None else files.read(files.project_file(project), project=True)
    named = _named_file(config_file or environ.get(CONFIG_VARIABLE))
    withheld = {} if own is None or trusted else _withheld(own)

    layers: dict[str, tuple[Value, Layer]] = {name: (key.default, "default") for name, key in KEYS.items()}
    _lay(layers, user, "user", {})
    _lay(layers, own, "project", withheld)
    _lay(layers, named, "file", {})
    _lay_given(layers, _variables(environ), "environment")
    _lay_given(layers, command_line or {}, "command line")
    if layers["store.data_dir"][0] is None:
        layers["store.data_dir"] = (files.default_data_dir(), "default")
    rules = [*_rules(user, "user"), *_rules(named, "user"), *_rules(own, "project", withheld)]
    warnings = tuple(dict.fromkeys(withheld.values()))
    return Settings(layers, _version(user, own, named), warnings, tuple(rules))


def read_scope(scope: Scope, project: str | None = None) -> SettingsFile:
    """What one file says, as it says it; nothing when it is absent."""
    return files.read(files.scope_file(scope, project), project=scope == "project")


def _named_file(path: str | None) -> SettingsFile | None:
    """The file that the user named: unlike the others it must be there."""
    if not path:
        return None
    named = files.read(os.path.abspath(path))
    if named.version == files.ABSENT:
        hint = f"Correct `--config` or {CONFIG_VARIABLE}"
        raise SettingsError(None, "there is no such file", hint=hint, path=named.path)
    return named


def _withheld(own: SettingsFile) -> dict[str, str]:
    """What an untrusted project's file may not set, and the warning for each."""
    names = [name for name, value in own.values.items() if _wants_trust(name, value)]
    return {
        name: f"{own.path}: `{known.unit(name)}` is left aside until the project is trusted" for name in names
    }


def _wants_trust(name: str, value: object) -> bool:
    """Whether a setting lets a project run code: by its key, or as a model that lies in a file of its own."""
    key = known.find(name)
    by_file = name == "model" and str(value).startswith(("local:", "scripted:"))
    return by_file or (key is not None and key.project == "trusted")


def _lay(
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
            key = known.find(name)
            assert key, name  # the file was checked when it was read
            settled = _settled(key, value, folder)
            layers[name] = (_added(layers[name][0], settled) if key.adds else settled, layer)


def _drop_replaced(layers: dict[str, tuple[Value, Layer]], given: Mapping[str, Any]) -> None:
    """Forget the tables that these take the place of, or another server would get the secrets of one."""
    units = {unit for name in given if (unit := known.unit(name)) != name}
    for name in [name for name in layers if known.unit(name) in units]:
        del layers[name]


def _added(before: Value, more: Value) -> Value:
    assert isinstance(before, tuple)
    assert isinstance(more, tuple)
    return (*before, *more)


def _rules(file: SettingsFile | None, scope: Scope, withheld: Mapping[str, str] | None = None) -> list[Rule]:
    """The permission rules of one file, each with where it stands."""
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
    """What the environment sets; an empty variable is as good as none."""
    found = {key.name: environ.get(key.environment) for key in KEYS.values() if key.environment}
    return {name: value for name, value in found.items() if value}


def _lay_given(layers: dict[str, tuple[Value, Layer]], given: Mapping[str, object], layer: Layer) -> None:
    for name, value in given.items():
        if value is not None:
            layers[name] = (_settled(_checked(name, value, layer), value, os.curdir), layer)


def _checked(name: str, value: object, layer: Layer) -> Key:
    """The key, when the value fits it; otherwise the error names the variable or the command line."""
    key = KEYS.get(name)
    if key is None:
        raise unknown(name)
    if key.narrow(value) is None:
        error = unexpected(key, value, name)
        place = key.environment if layer == "environment" else layer
        error.message = f"{place}: {error.message}"
        raise error
    return key


def _settled(key: Key, value: Any, folder: str) -> Value:
    """The value as the program uses it: a path is absolute, seen from its file's folder."""
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
