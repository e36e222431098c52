"""The names by which `exclude` and `include` address blocks of context. Pure.

A name is the kind of a block, its id or its label. Blocks of files and patches are named by what the project and the
chat contain, which the caller knows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..model.failures import Refused
from ..text.suggest import MAX_COMPARED, did_you_mean
from .assembly import INDEX_LABEL, RETRIEVED_LABEL

OPEN_FILES = "openFiles"
PATCHES = "patches"
GIT_DIFF = "gitDiff"
RETRIEVAL = "retrieval"
INDEX = "kept"

FILE_PREFIX = "file:"
PATCH_PREFIX = "patch:"
DIFF_PREFIX = "diff "

OPEN_FILES_LABEL = "open files"
PATCHES_LABEL = "changes by tools, newest first"
GIT_DIFF_LABEL = "git diff"

KINDS = (OPEN_FILES, PATCHES, GIT_DIFF, RETRIEVAL)
"""The kinds of blocks that a gate opens. `include` opens the gate of each."""

_LABELS = (OPEN_FILES_LABEL, PATCHES_LABEL, GIT_DIFF_LABEL, RETRIEVED_LABEL, INDEX_LABEL)
_IDS = ("snapshot", "files", INDEX)
_SWITCHED = frozenset((*KINDS, *_IDS, *_LABELS))
_ALWAYS_SENT = (
    "system",
    "tools",
    "rules",
    "standing",
    "hooks",
    "summary",
    "history",
    "attachments",
    "prompt",
)
_MAX_QUOTED = 200


def included_kinds(include: Collection[str]) -> frozenset[str]:
    """Return the kinds of blocks whose gates these names open."""
    labels = {GIT_DIFF_LABEL: GIT_DIFF}
    return frozenset(labels.get(name, name) for name in include) & frozenset(KINDS)


def check_names(field: str, names: Sequence[str], known: Collection[str], *, excludes: bool) -> None:
    """Refuse the first name that no block has. `known` are the names of files and patches."""
    for position, name in enumerate(names):
        if name in _SWITCHED or name in known or name.startswith(f"{GIT_DIFF_LABEL};"):
            continue
        if name in _ALWAYS_SENT:
            if excludes:
                raise _refusal(f"{field}[{position}]", f"`{name}` is part of every request", None)
            continue
        nearest = _nearest(name, (*KINDS, *_IDS, *_ALWAYS_SENT, *known)) or _nearest(name, _LABELS)
        said = f"no block has the name {name[:_MAX_QUOTED]!r}"
        raise _refusal(f"{field}[{position}]", said, nearest)


def may_name_file(name: str) -> bool:
    """Return whether a name is spelled like that of a file or a patch."""
    return name.startswith((FILE_PREFIX, PATCH_PREFIX, DIFF_PREFIX)) or "." in name or "/" in name


def _nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that was probably meant, whatever its case and its separators."""
    plain = {_plain(one): one for one in known}
    near = did_you_mean(_plain(name[:MAX_COMPARED]), plain)
    return plain[near[0]] if near else None


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def _refusal(field: str, said: str, nearest: str | None) -> Refused:
    meant = f"; did you mean `{nearest}`?" if nearest else "."
    allowed = "openFiles, patches, gitDiff, retrieval, snapshot, or the id or label of a block, such as a file's path"
    return Refused(
        "invalid_params",
        f"`{field}`: {said}{meant} Allowed: {allowed}",
        params={"field": field, "expected": allowed, **({"nearest": nearest} if nearest else {})},
    )
