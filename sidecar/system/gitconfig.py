"""The user's git configuration without secrets and without anything that runs a program: for commands in the sandbox.

Only names in an allowlist are copied, so new options of later git versions are excluded until they are added here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from .environment import looks_secret
from .programs import find_program, own_environment

READ_S = 2.0
"""Git lists a file in a few milliseconds; a home on a network file system that hangs must not block a command."""

MAX_BYTES = 16 * 1024
"""Bytes of the resulting text, which is one argument of a command line. A longer one is omitted."""

_FILES = (".config/git/config", ".gitconfig")
_TEXT = """
    user.name user.email user.useconfigonly init.defaultbranch core.autocrlf core.eol core.safecrlf core.quotepath
    core.excludesfile core.attributesfile core.filemode core.precomposeunicode pull.rebase pull.ff push.default
    fetch.prune merge.conflictstyle merge.ff diff.algorithm diff.renames diff.mnemonicprefix log.date rerere.enabled
    branch.autosetuprebase branch.sort tag.sort rebase.autosquash rebase.autostash safe.directory
    feature.manyfiles index.version
"""
_NAMES = frozenset(_TEXT.split())
"""The names that are copied."""


def read_gitconfig(home: str, environ: Mapping[str, str]) -> str:
    """Return the allowed entries of the home's git configuration as the text of a file. Blocking."""
    lines = [line for name in _FILES for line in _lines(os.path.join(home, name), environ)]
    text = "".join(lines)
    return text if len(text.encode()) <= MAX_BYTES else ""


def _lines(path: str, environ: Mapping[str, str]) -> list[str]:
    program = find_program("git", environ.get("PATH", os.defpath)) if os.path.isfile(path) else None
    if program is None:
        return []
    try:
        listed = subprocess.run(
            [program, "config", "--file", path, "--no-includes", "--null", "--list"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=own_environment({"PATH": environ.get("PATH", os.defpath)}),
            cwd="/",
            timeout=READ_S,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return []
    entries = (entry.partition("\n") for entry in listed.split("\0") if entry)
    return [_option(name, value) for name, _, value in entries if name in _NAMES and not looks_secret(value)]


def _option(name: str, value: str) -> str:
    section, _, key = name.partition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{key} = "{quoted}"\n'
