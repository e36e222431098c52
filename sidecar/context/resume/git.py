"""Finds the git commands in a command line that change a repository, such as `git commit`.

Only describes commands: `policy` decides what may run.
"""

from __future__ import annotations

import re
import shlex

MAX_COMMAND = 4_000
"""Characters of a command line that are read: a longer one is a script with embedded input."""

_ENDS = ";&|()\n"
_PREFIX_COMMANDS = frozenset(
    {"sudo", "env", "command", "time", "nice", "exec", "then", "do", "else", "!", "{"}
)
_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_CHANGE = frozenset(
    {
        *("am", "apply", "checkout", "cherry-pick", "clone", "commit", "init", "merge", "mv", "pull"),
        *("push", "rebase", "reset", "restore", "revert", "rm", "switch"),
    }
)
_CHANGE_BY_NAME = frozenset({"branch", "stash", "tag", "worktree", "submodule"})
_READ_ONLY = frozenset({"list", "show", "status", "foreach", "summary"})
_COMMITTED = re.compile(r"^\[(\S{1,100})(?: \([^)]{1,40}\))? ([0-9a-f]{7,40})\]", re.MULTILINE)


def git_operations(command: str) -> list[list[str]]:
    """Return the words of each git command that changes something; none for a line that cannot be parsed."""
    try:
        return [words for part in _parts(command[:MAX_COMMAND]) if (words := _git(part))]
    except ValueError:
        return []


def parse_commit(output: str) -> str | None:
    """Return the branch and short hash that git prints for a commit, which no translation of git changes."""
    found = _COMMITTED.search(output[:MAX_COMMAND])
    return f"{found[1]} {found[2]}" if found else None


def _parts(command: str) -> list[list[str]]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_ENDS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    parts: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(_ENDS):
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _git(words: list[str]) -> list[str] | None:
    at = 0
    while at < len(words) and (words[at] in _PREFIX_COMMANDS or re.match(r"\w+=", words[at])):
        at += 1
    if at == len(words) or words[at].rpartition("/")[2] not in ("git", "git.exe"):
        return None
    at += 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE else 1
    rest = words[at:]
    return ["git", *rest] if rest and _changes(rest[0], rest[1:]) else None


def _changes(name: str, arguments: list[str]) -> bool:
    if name in _CHANGE:
        return "--help" not in arguments and "--dry-run" not in arguments
    if name == "stash" and not arguments:
        return True
    named = [word for word in arguments if not word.startswith("-")]
    return (
        name in _CHANGE_BY_NAME and bool(named) and named[0] not in _READ_ONLY and "--list" not in arguments
    )
