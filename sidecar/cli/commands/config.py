"""`sidecar config`: show every setting with its origin, and change one. The sidecar provides the values."""

from __future__ import annotations

import json
import sys
import tomllib
from argparse import Namespace
from typing import Any

from sidecar_client import Sidecar
from sidecar_protocol.messages import SettingsReadResult, SettingValue

from ..client import existing_folder, run
from ..terminal.columns import print_columns


def show(options: Namespace) -> int:
    project = existing_folder(getattr(options, "project", None), "--project")
    found = run(options, lambda app: app.settings(project))
    _print_values(found)
    return 0


def set_value(options: Namespace) -> int:
    return _write(options, as_toml(options.value))


def unset_value(options: Namespace) -> int:
    return _write(options, None)


def as_toml(text: str) -> Any:
    """Return `text` as a TOML value: true, 3, "x", [1, 2]; anything else is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _write(options: Namespace, value: Any) -> int:
    project = existing_folder(getattr(options, "project", None), "--project")
    params: dict[str, Any] = {"scope": "project" if project else "user", "set": {options.key: value}}
    if project:
        params["projectPath"] = project

    async def change(app: Sidecar) -> SettingsReadResult:
        result: SettingsReadResult = await app.call("settings/write", params)
        return result

    written = run(options, change)
    now = written.values.get(options.key)
    print(f"{options.key} = {_value(now)}  ({_file(written)})" if now else f"{options.key} is unset.")
    return 0


def _file(result: SettingsReadResult) -> str:
    return f"in {result.path}" if result.path else "written"


def _value(setting: SettingValue) -> str:
    return "none" if setting.value is None else json.dumps(setting.value, ensure_ascii=False)


def _print_values(found: SettingsReadResult) -> None:
    rows = [(key, _value(setting), setting.layer) for key, setting in found.values.items()]
    print_columns(("key", "value", "from"), rows, wide=1)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
