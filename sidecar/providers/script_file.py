"""Read a script from its file, and report errors with their position and remedy."""

from __future__ import annotations

import json
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec

from ..model.failures import ProviderFailed
from ..system.lazy import lazy_module
from ..system.safe_open import FileRefused, open_regular
from ..text.suggest import did_you_mean
from .script_format import Script, ScriptedCall, ScriptedFault, ScriptedReply, ScriptedStep, ScriptedUsage

if TYPE_CHECKING:
    from ..text import expected
else:
    expected = lazy_module("sidecar.text.expected")

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
"""Longer streams are made with `repeat`; the file is read at once, on the event loop."""

HINT = "docs/scripted.md describes the format"


def load(path: str) -> Script:
    """Return the script in a file: TOML by its suffix, JSON otherwise."""
    data = _read(path).removeprefix(b"\xef\xbb\xbf")
    tree = _toml(path, data) if path.endswith(".toml") else _json(path, data)
    try:
        return msgspec.convert({"replies": tree} if isinstance(tree, list) else tree, Script)
    except msgspec.ValidationError as error:
        raise _mismatch(path, str(error)) from error


def _read(path: str) -> bytes:
    """Return the bytes of a regular file: a FIFO would block every chat."""
    if not os.path.isfile(path):
        raise ProviderFailed(
            "model_unknown",
            f"{path}: there is no such script",
            hint="Write scripted:PATH with a path from the sidecar's working folder, or an absolute one",
            params={"path": path},
            action="choose_model",
        )
    try:
        with open(open_regular(path), "rb") as file:
            data = file.read(MAX_SCRIPT_BYTES + 1)
    except FileRefused as refusal:
        raise _bad_script(path, None, f"cannot be read ({refusal})") from refusal
    except OSError as error:
        raise _bad_script(path, None, f"cannot be read ({error.strerror})") from error
    if len(data) > MAX_SCRIPT_BYTES:
        raise _bad_script(
            path, None, f"is longer than {MAX_SCRIPT_BYTES} bytes; make long streams with `repeat`"
        )
    return data


def _json(path: str, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad_script(path, None, f"is not valid JSON: {_json_error(data) or error}") from error


def _json_error(data: bytes) -> str | None:
    """Return the standard library's error, since it names line and column; it accepts more than msgspec."""
    try:
        json.loads(data)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _toml(path: str, data: bytes) -> Any:
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise _bad_script(path, None, f"is not valid TOML: {error}") from error


def _mismatch(path: str, complaint: str) -> ProviderFailed:
    """msgspec says "what - at `$.place`"; here the position comes first, and a field gets its nearest match."""
    what, _, place = complaint.partition(" - at `$")
    unknown = re.search(r"unknown field `(.*)`", what)
    if unknown:
        nearest = did_you_mean(unknown[1], FIELDS)
        what = f"there is no field `{unknown[1][:64]}`" + (
            f"; did you mean `{nearest[0]}`?" if nearest else ""
        )
    place = place.rstrip("`").lstrip(".")
    if what.startswith("Invalid enum value"):
        what += f"; allowed: {expected.allowed_at(Script, place)}"
    return _bad_script(path, place or None, what)


def _bad_script(path: str, place: str | None, what: str) -> ProviderFailed:
    where = f"{path}: `{place}`" if place else path
    params = {"path": path, "place": place} if place else {"path": path}
    return ProviderFailed("bad_reply", f"{where}: {what}", hint=HINT, params=params)


FIELDS = sorted(
    {
        field
        for part in (Script, ScriptedReply, ScriptedStep, ScriptedCall, ScriptedFault, ScriptedUsage)
        for field in part.__struct_encode_fields__
    }
)
