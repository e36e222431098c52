"""The output file of a command: its path, and what to do when it exists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sidecar_client import RpcError

from .errors import CommandFailed

T = TypeVar("T")


def output_path(given: str | None, overwrite: bool, option: str) -> str | None:
    """Return the absolute path that `option` names; None when the option was not given."""
    if given is None:
        if overwrite:
            raise CommandFailed(f"--overwrite: it replaces the file that {option} names; give that too.")
        return None
    return str(Path(given).expanduser().absolute())


def with_remedy(action: Callable[[], T], **remedies: str) -> T:
    """Run `action`; an error of one of these names is reported with its remedy."""
    try:
        return action()
    except RpcError as error:
        if error.name in remedies:
            raise CommandFailed(f"{error.message}\n  {remedies[error.name]}", 1) from None
        raise


OVERWRITE_HINT = "--overwrite replaces it."
"""The remedy for an existing file."""
