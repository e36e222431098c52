"""Bubblewrap: whether it works here, and the command line that confines a command by it. Runs nothing but a trial.

Inside there is no network, no other process, an empty /tmp and /run, and a file system that can only be read, but for
the project's folders. Secrets of the user's home and our own data are not there. Git's hooks and configuration, which
git would run outside later, can only be read.

What cannot be kept out: a repository that the command creates where there was none, with hooks of its own, and
repositories deeper in the project. `planted` tells what has appeared, so that the caller can say so.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Sequence

import msgspec

TRIAL_S = 5.0
"""A trial takes some ten milliseconds; a machine that needs longer is in no state to run commands either."""

WRAPPERS = 2
"""Bubblewrap itself, and the first process of the sandbox, which waits for the others."""

SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".oci"),
    *(".config/sidecar", ".config/gh", ".config/gcloud", ".config/op", ".config/git/credentials"),
    *(
        ".local/share/sidecar",
        ".local/share/keyrings",
        ".mozilla",
        ".config/google-chrome",
        ".config/chromium",
    ),
    *(".netrc", ".git-credentials", ".pypirc", ".npmrc", ".cargo/credentials.toml", ".pgpass", ".my.cnf"),
)
"""Of the user's home: what others would take a person's keys from."""

READ_ONLY = ("hooks", "config", "config.worktree", "commondir", "modules")
"""Of git's own folder: what makes git run programs, or look for its configuration elsewhere."""

_ISOLATED = (
    *("--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--die-with-parent", "--new-session"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)
_AS_ROOT = (
    "--cap-drop",
    "ALL",
    "--cap-add",
    "CAP_DAC_OVERRIDE",
    "--cap-add",
    "CAP_FOWNER",
    "--cap-add",
    "CAP_CHOWN",
    *("--ro-bind", "/proc/sys", "/proc/sys", "--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
)
"""Root would keep its powers inside, and could mount the file system again to write to it. What is left to it are the
files of other users, which a project in a container often consists of. The kernel's own settings are root's by its
name alone, whatever its powers: one of them names a program that runs outside when another one crashes."""

_EMPTIED = ("/tmp", "/var/tmp", "/run", "/var/run")
"""Sockets lie there (a container's daemon, the session's bus) by which others would act for the command, outside."""

_LOST = frozenset(
    ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "TMPDIR", "TMP", "TEMP")
)
_KEPT = ("/run/current-system", "/run/booted-system", "/run/wrappers", "/run/opengl-driver")
"""Where NixOS has its programs."""


class Sandbox(msgspec.Struct, frozen=True):
    """A bubblewrap that works."""

    program: str

    def wrap(
        self, argv: Sequence[str], project: str, writable: Sequence[str], hidden: Sequence[str], cwd: str
    ) -> list[str]:
        """The command line that runs `argv` in `cwd`, where only `project` and the folders `writable` can be changed.

        `hidden` are folders or files that shall not be seen; so are the secrets of the user's home. All paths are
        absolute. What is not there is passed over, and what lies in a hidden folder but is writable is shown.
        """
        folders = [os.path.realpath(path) for path in (project, *writable) if os.path.isdir(path)]
        secrets = {os.path.realpath(path) for path in (*_secrets_of_home(), *hidden) if os.path.exists(path)}
        around = {path for path in secrets if any(_holds(path, folder) for folder in folders)}
        options = [*_isolated()]
        options += [word for path in _EMPTIED if _is_folder(path) for word in ("--tmpfs", path)]
        options += [word for path in _KEPT for word in ("--ro-bind-try", path, path)]
        options += [word for path in sorted(around) for word in _hide(path)]
        # The outer folder first, or it would cover what was bound within it.
        options += [word for path in sorted(set(folders)) for word in ("--bind", path, path)]
        options += [word for path in sorted(set(folders)) for word in _protect(path)]
        options += [word for path in sorted(secrets - around) for word in _hide(path)]
        return [self.program, *options, "--chdir", cwd, "--", *argv]


@functools.cache
def detect() -> Sandbox | None:
    """Bubblewrap, if it is there and the system lets it work. Tried once; blocking."""
    import shutil

    program = shutil.which("bwrap")
    if program is None or not os.path.isabs(program):
        return None
    try:
        trial = subprocess.run(
            [program, *_isolated(), "--tmpfs", "/tmp", "--", "/bin/sh", "-c", "exit 42"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TRIAL_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Sandbox(program) if trial.returncode == 42 else None


def clean_environment(environ: dict[str, str]) -> dict[str, str]:
    """The environment without what would lead to nothing inside."""
    return {name: value for name, value in environ.items() if name not in _LOST}


def planted(project: str) -> frozenset[str]:
    """Which of the names that `wrap` protects are there; what is new after a command was planted by it."""
    names = (".git", *(f".git/{name}" for name in READ_ONLY))
    return frozenset(name for name in names if os.path.lexists(os.path.join(project, name)))


def _isolated() -> tuple[str, ...]:
    return (*_ISOLATED, *_AS_ROOT) if os.geteuid() == 0 else _ISOLATED


def _secrets_of_home() -> list[str]:
    home = os.path.expanduser("~")
    return [os.path.join(home, name) for name in SECRETS] if os.path.isabs(home) else []


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _hide(path: str) -> tuple[str, ...]:
    return ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)


def _protect(folder: str) -> Iterator[str]:
    """Make git's own folder a mount of its own, which cannot be renamed away, and parts of it read-only.

    What lies outside `folder` cannot be written to anyway, and a link must not bring it in.
    """
    git = os.path.realpath(os.path.join(folder, ".git"))
    if not _holds(folder, git) or not os.path.exists(git):
        return
    parts = [os.path.join(git, name) for name in READ_ONLY]
    links = [path for path in parts if os.path.islink(path)]
    if links or not os.path.isdir(git):
        # No mount can hold a link in its place, nor a worktree's file that tells where git's folder is: all or nothing.
        yield from ("--ro-bind", git, git)
        for real in map(os.path.realpath, links):
            if _holds(folder, real) and os.path.exists(real):
                yield from ("--ro-bind", real, real)
        return
    yield from ("--bind", git, git)
    for path in parts:
        if os.path.exists(path):
            yield from ("--ro-bind", path, path)
    hooks = os.path.join(git, "hooks")
    if not os.path.exists(hooks):
        # Bubblewrap makes an empty folder for it, as git itself does.
        yield from ("--tmpfs", hooks, "--remount-ro", hooks)


def _is_folder(path: str) -> bool:
    """Whether it is a folder itself, not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)
