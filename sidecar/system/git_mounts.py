"""The mounts that keep git's hooks and settings read-only in the sandbox, while its objects can be written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from .folders import holds
from .git_folders import GIT_NAMES, WORK_TREE_NAMES, enclosing, git_folders, links, work_trees


def repositories_of(folders: Sequence[str], found: Iterable[str], bare: Iterable[str]) -> list[str]:
    """Return the `.git` of these folders or above them, of the folders `found`, and the `bare` repositories."""
    above = filter(None, map(enclosing, folders))
    beneath = (os.path.join(os.path.realpath(path), ".git") for path in found)
    return sorted({*above, *beneath, *map(os.path.realpath, bare)})


def steering_files(repositories: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Return the files and folders of the project that git's hooks and configuration lead to."""
    targets = (target for git in repositories for _, target in links(git))
    return sorted({path for path in targets if _is_beneath(path, folders) and os.path.exists(path)})


class GitMounts(msgspec.Struct, frozen=True):
    """`mount_points` become mounts of their own, which cannot be renamed; `fixed` become read-only, and `emptied` too:
    they are missing. A mounted folder would uncover what was mounted beneath it, so those come first.
    """

    mount_points: set[str]
    fixed: set[str]
    emptied: set[str]


def mounts_of(repositories: Iterable[str], folders: Sequence[str]) -> GitMounts:
    """Return what keeps hooks and settings as they are. What is outside of the writable `folders` is read-only
    anyway, and a link must not bring it in.
    """
    gits = list(repositories)
    found = GitMounts(set(), set(), set())
    # No mount can pin what the file of a work tree names, but the file itself.
    found.fixed.update(os.path.realpath(git) for git in gits if os.path.isfile(git))
    for folder in {folder for git in gits for folder in git_folders(git)}:
        if _is_within(folder, folders):
            _add_folder(found, folder)
    return GitMounts(
        {path for path in found.mount_points if _is_beneath(path, folders)},
        {path for path in found.fixed if _is_beneath(path, folders) and os.path.exists(path)},
        found.emptied,
    )


def _add_folder(found: GitMounts, git: str) -> None:
    parts = [os.path.join(git, name) for name in GIT_NAMES]
    links_of = [path for path in parts if os.path.islink(path)]
    if links_of:
        # No mount can pin a link: all or nothing.
        found.fixed.update((git, *map(os.path.realpath, links_of)))
        return
    found.mount_points.add(git)
    found.fixed.update(parts)
    for tree in work_trees(git):
        # One that is replaced could name another configuration.
        found.mount_points.update((os.path.dirname(tree), tree))
        found.fixed.update(os.path.join(tree, name) for name in WORK_TREE_NAMES)
    hooks = os.path.join(git, "hooks")
    if not os.path.exists(hooks) and not os.path.exists(os.path.join(git, "commondir")):
        # Bubblewrap creates an empty folder for it, as git itself does.
        found.emptied.add(hooks)


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(holds(folder, path) for folder in folders)


def _is_beneath(path: str, folders: Iterable[str]) -> bool:
    """Return whether it is in one of the folders, which itself must stay writable."""
    return path not in folders and _is_within(path, folders)
