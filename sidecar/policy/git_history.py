"""Whether a command shows what is in files of a commit that its words do not name. Pure text.

Git prints files from its objects, which no rule for a path can hide. So a command that may print any of them is
treated like one that walks the whole project.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from .tables import word_set

_LOGS = word_set("log reflog whatchanged stash")
"""Git's commands that print what is in files only with an option."""

_SHOWS = _LOGS | word_set(
    "show diff diff-tree diff-index diff-files range-diff grep cat-file format-patch archive fast-export bundle"
)
"""Git's commands that print what is in files, of any commit."""

_PATCH = re.compile(
    r"-p|-u$|-c$|-L|-U|-G|-S|--patch|--cc|--combined|--unified|--word-diff|--remerge-diff|--pickaxe"
)
"""Options with which git prints files beside a summary, or searches in them."""

_SUMMARIES = word_set(
    """
    --stat --name-only --name-status --numstat --shortstat --summary --dirstat --no-patch -s -q --quiet --check -t -e
    """
)
"""Options with which git prints no files."""

_WITH_VALUE = word_set("-C -c --git-dir --work-tree --namespace --config-env --exec-path")
"""Options before git's command whose value is the next word."""

_FILE_WORD = re.compile(r"[^:*?\[\]]*[^/:*?\[\]]\.\w+")
"""A word that names a file: with a suffix, and none of the signs of a pattern. Without a suffix it may be a folder."""

_TOKENS = re.compile(r"[\s\"'`,;()\[\]{}|&<>\\]+")


def shows_files(words: Sequence[str]) -> bool:
    """Return whether git with these words prints what is in files that they do not name."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        if any(word.startswith("alias.") for word in rest[:2]):
            return True
        del rest[: 2 if rest[0] in _WITH_VALUE else 1]
    part, rest = (rest[0], rest[1:]) if rest else ("", [])
    if part not in _SHOWS:
        return False
    options = [word.partition("=")[0] for word in rest if word[:1] == "-"]
    patch = any(map(_PATCH.match, options))
    if not patch and (part in _LOGS or any(word in _SUMMARIES for word in options)):
        return False
    named = rest[rest.index("--") + 1 :] if "--" in rest else []
    if named and all(map(_FILE_WORD.fullmatch, named)):
        return False
    others = [word for word in rest if word[:1] != "-"]
    # `commit:path` names the file.
    return not (part in ("show", "cat-file") and others and all(":" in word[1:] for word in others))


def mentions_git_files(text: str) -> bool:
    """Return whether a text that cannot be parsed may start such a git, within another command or in code."""
    for line in re.split(r"[\n;|&]", text):
        tokens = list(filter(None, _TOKENS.split(line)))
        starts = [at for at, token in enumerate(tokens) if posixpath.basename(token) == "git"]
        if any(shows_files(tokens[at + 1 :]) for at in starts):
            return True
    return False
