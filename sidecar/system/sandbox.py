"""Bubblewrap: whether it works here, and the command line that confines a command with it. Runs nothing but a trial.

Inside there is no network, no other process, an empty /tmp, /run and home, and a read-only file system, except for
the folders of the project. Of the home, toolchains and caches are readable (`homes`). Credentials, other projects,
sockets and our own data are not visible. Git's hooks and configuration, and the files that decide what we run
outside, are read-only.

What cannot be prevented: a repository that the command creates where there was none, with its own hooks, and settings
of editors and shells. `survey` finds new ones, so that the caller can report them.
"""

from __future__ import annotations

import functools
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from . import trusted_files
from .folders import holds
from .gitconfig import read_gitconfig
from .homes import all_homes, credentials, find_stray_credentials, is_system, tools, users_homes
from .lazy import lazy_module
from .programs import find_program
from .sockets import find_sockets, is_socket
from .syscalls import filter_path

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from . import git_mounts, own_code
else:
    git_mounts = lazy_module("sidecar.system.git_mounts")
    own_code = lazy_module("sidecar.system.own_code")

TRIAL_S = 5.0
"""A trial takes some ten milliseconds; a machine that needs longer cannot run commands either."""

WRAPPERS = 2
"""Bubblewrap itself, and the init process of the sandbox."""

MAX_TMP = 1024 * 1024 * 1024
"""Bytes that each writable folder in memory may hold: /tmp, /var/tmp, /dev/shm and the home."""

MAX_RUN = 16 * 1024 * 1024
"""Bytes of folders in memory that hold sockets and locks only, and of those that hide something."""

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
"""Root would keep its capabilities inside, and could remount the file system as writable. It keeps only access to the
files of other users, which a project in a container often consists of. The kernel's own settings belong to root by
uid alone, whatever its capabilities: one of them names a program that runs outside when another one crashes.
"""

_TEMPORARY = ("/tmp", "/var/tmp")
_EMPTY_FOLDERS = ("/run", "/var/run")
"""They contain sockets (of a container daemon, of the session bus) through which others would act for the command,
outside.
"""

_VISIBLE_FOLDERS = ("/run/current-system", "/run/booted-system", "/run/wrappers", "/run/opengl-driver")
"""Where NixOS has its programs."""

_PRELUDE = """
{ echo confined 1 >&8; exec 8>&-; } 2>/dev/null
[ "$1" = 0 ] || ulimit -u "$1" 2>/dev/null || ulimit -p "$1" 2>/dev/null
[ -z "$2" ] || printf %s "$2" > "$3/.gitconfig"
shift 3
while [ "$1" != -- ]; do export "$1"; shift; done
shift
exec "$@"
"""
"""Runs inside, before the command, and reports to the supervisor that everything is mounted: until then, the output is
bubblewrap's and the exit code too. The limit of processes must be set there: the kernel counts a user's processes per
user namespace, and a limit that is set outside would count all processes of the user.
"""

_COVER_MODE = 0o444
"""With which bubblewrap creates a file to mount on."""

_OPEN_FILTER = 'exec "$@" 9<"$0"'

_COUNTS = "ulimit -u 9 2>/dev/null || ulimit -p 9 2>/dev/null || exit 1; (exit 0) && (exit 0) && exit 42"
"""Exits with 42 if the kernel counts the sandbox's processes alone. Outside, the user has more than nine, so the limit
of nine would fail.
"""


class SandboxView(msgspec.Struct, frozen=True):
    """What a command can see beyond the project, and what it must not change.

    `others` are the folders of other projects; `readable` what the user's settings show; `read_only` files in the
    project that decide what we run outside; `repositories` folders of the project that hold a `.git`, and `bare` those
    that are a repository themselves; `sockets` what was found in the project. `max_tmp` limits each folder in memory,
    `max_processes` (0: no limit) the processes. `variables` are set for the command only, not for bubblewrap.
    """

    others: Sequence[str] = ()
    readable: Sequence[str] = ()
    read_only: Sequence[str] = ()
    repositories: Sequence[str] = ()
    bare: Sequence[str] = ()
    sockets: Sequence[str] = ()
    max_tmp: int = MAX_TMP
    max_processes: int = 0
    variables: Mapping[str, str] = {}


class Sandbox(msgspec.Struct, frozen=True):
    """A working bubblewrap. `can_limit_memory` says that it can limit folders in memory, `can_count_processes` that
    the kernel counts the processes of a sandbox separately; `syscalls` is the path of a filter that it installs
    (`syscalls`).
    """

    program: str
    can_limit_memory: bool = True
    can_count_processes: bool = False
    syscalls: str = ""

    def wrap(
        self,
        argv: Sequence[str],
        project: str,
        writable: Sequence[str],
        hidden: Sequence[str],
        cwd: str,
        view: SandboxView = SandboxView(),  # noqa: B008  a frozen value
        environ: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return the command line that runs `argv` in `cwd`, where only `project` and the folders `writable` can be
        changed.

        `hidden` are folders or files that must not be visible, like credentials. All paths are absolute. Missing ones
        are skipped, and a writable folder within a hidden one is visible. Blocking.
        """
        environ = os.environ if environ is None else environ
        folders = sorted({os.path.realpath(path) for path in (project, *writable) if os.path.isdir(path)})
        # The order of the options is the order of the mounts: a later one covers an earlier one. Empty
        # folders come first, then what is visible in them, then what is writable, then what is not.
        plan = _Plan(self, folders, view, environ)
        secrets = {
            os.path.realpath(path) for path in (*credentials(environ), *hidden) if os.path.exists(path)
        }
        around = {path for path in secrets if any(holds(path, folder) for folder in folders)}
        options = [*self._base(view), *plan.emptied_folders(around)]
        shown = plan.shown_folders(view.readable)
        options += _flat(("--ro-bind", path, path) for path in shown)
        secrets |= _stray(shown, view.readable, environ)
        # The outer folder first, or it would cover what was bound within it.
        options += _flat(("--bind", path, path) for path in folders)
        hidden_within = [path for path in _outermost(secrets - around) if plan.is_seen(path)]
        repositories = git_mounts.repositories_of(folders, view.repositories, view.bare)
        read_only = [*view.read_only, *own_code.own_environment_in(folders)]
        read_only += git_mounts.steering_files(repositories, folders)
        fixed = [*map(os.path.realpath, read_only), *hidden_within]
        git = git_mounts.mounts_of(repositories, folders)
        mount_points = sorted({*_between(folders, fixed), *git.mount_points})
        options += _flat(("--bind", path, path) for path in mount_points)
        options += _flat(("--ro-bind", path, path) for path in sorted(git.fixed))
        options += _flat(("--tmpfs", path, "--remount-ro", path) for path in sorted(git.emptied))
        options += _flat(_guard(path, os.path.realpath(project)) for path in folders)
        options += _flat(_make_read_only(path, folders) for path in read_only)
        options += _flat(self._hide(path) for path in hidden_within)
        options += _flat(_cover(path) for path in plan.sockets())
        prelude = self._prelude(view, plan, environ)
        return [*self.start(), *options, "--chdir", cwd, "--", *prelude, *argv]

    def start(self) -> tuple[str, ...]:
        """Return the arguments that start bubblewrap. It reads the filter from a descriptor, which a shell opens for
        it.
        """
        if not self.syscalls:
            return (self.program,)
        return ("/bin/sh", "-c", _OPEN_FILTER, self.syscalls, self.program, "--seccomp", "9")

    def tmpfs(self, path: str, size: int) -> tuple[str, ...]:
        """Return the arguments that mount an empty folder in memory at `path`."""
        return ("--size", str(size), "--tmpfs", path) if self.can_limit_memory else ("--tmpfs", path)

    def _base(self, view: SandboxView) -> Iterator[str]:
        yield from _isolation_options()
        # /dev is a folder in memory too: writable, it would have no limit.
        yield from (*self.tmpfs("/dev/shm", view.max_tmp), "--remount-ro", "/dev")
        for path in (*_TEMPORARY, *_EMPTY_FOLDERS):
            if _is_folder(path):
                yield from self.tmpfs(path, view.max_tmp if path in _TEMPORARY else MAX_RUN)
        for path in _VISIBLE_FOLDERS:
            yield from ("--ro-bind-try", path, path)

    def _hide(self, path: str) -> tuple[str, ...]:
        if not os.path.isdir(path):
            return _cover(path)
        return (*self.tmpfs(path, MAX_RUN), "--remount-ro", path)

    def _prelude(self, view: SandboxView, plan: _Plan, environ: Mapping[str, str]) -> list[str]:
        processes = view.max_processes if self.can_count_processes else 0
        home = environ.get("HOME", "")
        gitconfig = read_gitconfig(home, environ) if os.path.realpath(home) in plan.homes else ""
        variables = [f"{name}={value}" for name, value in view.variables.items()]
        return ["/bin/sh", "-c", _PRELUDE, "sh", str(processes), gitconfig, home, *variables, "--"]


class _Plan:
    """Which folders are replaced by empty ones, and what of them is visible. `folders` are those that the command may
    write to, as real paths.
    """

    def __init__(
        self, box: Sandbox, folders: Sequence[str], view: SandboxView, environ: Mapping[str, str]
    ) -> None:
        self._box = box
        self._folders = folders
        self._view = view
        self._environ = environ
        self.homes = [home for home in all_homes(environ) if not _is_within(home, folders)]
        others = (os.path.realpath(path) for path in view.others if os.path.isdir(path))
        # Emptying one that contains this project, or lies in it, would hide files of this project.
        self._others = {path for path in others if self._is_apart(path)}
        temporary = [path for path in (*_TEMPORARY, *_EMPTY_FOLDERS) if _is_folder(path)]
        self._empty = {*self.homes, *self._others, *temporary}
        self._shown: list[str] = []

    def emptied_folders(self, around: set[str]) -> Iterator[str]:
        """Return the homes, other projects and hidden folders around the project that are emptied. The outer first."""
        self._empty |= around
        for path in sorted({*self.homes, *self._others, *around}):
            if not os.path.isdir(path):
                continue
            yield from self._box.tmpfs(path, self._view.max_tmp if path in self.homes else MAX_RUN)
        for home in users_homes(self._environ):
            real = os.path.realpath(home)
            if real != home and real in self.homes and _is_within(home, self._empty):
                yield from ("--symlink", real, home)

    def shown_folders(self, readable: Sequence[str]) -> list[str]:
        """Return the toolchains in emptied folders, and what the user's settings show. The outer first."""
        named = (path.rstrip("/") for path in (*tools(self._environ), *readable))
        wanted = [path for path in named if self._may_be_shown(path)]
        # No mount point can be created through a link, such as a home that is one.
        spelled = (
            os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in wanted
        )
        both = {*spelled, *map(os.path.realpath, wanted)}
        self._shown = sorted(path for path in both if _is_within(path, self._empty))
        return self._shown

    def is_seen(self, path: str) -> bool:
        """Return whether a path is visible inside: not in an emptied folder, or in a visible part of it."""
        return not _is_within(path, self._empty) or _is_within(path, (*self._shown, *self._folders))

    def sockets(self) -> list[str]:
        found = {*find_sockets(), *(path for path in self._view.sockets if is_socket(path))}
        return sorted(path for path in found if self.is_seen(path))

    def _is_apart(self, path: str) -> bool:
        """Return whether another project does not overlap with this one, and contains nothing of the system."""
        if is_system(path) or path in self.homes:
            return False
        return not any(holds(path, folder) or holds(folder, path) for folder in self._folders)

    def _may_be_shown(self, path: str) -> bool:
        """Never a home itself, or its parents; nor another project."""
        if not os.path.isabs(path) or not os.path.exists(path):
            return False
        real = os.path.realpath(path)
        return not any(holds(real, folder) or holds(path, folder) for folder in self._empty)


_Absence = tuple[Literal["not_installed", "not_working"], str]

_refusal: _Absence = ("not_installed", "")
"""Why the last trial failed."""


@functools.cache
def detect() -> Sandbox | None:
    """Return bubblewrap, if it is installed and works. Tried once; blocking."""
    global _refusal
    program = find_program("bwrap")
    if program is None:
        _refusal = ("not_installed", "bubblewrap (bwrap) is not installed")
        return None
    # Older versions of bubblewrap have no `--size`.
    for can_limit_memory in (True, False):
        box = Sandbox(program, can_limit_memory)
        if _try(box, "exit 42"):
            filtering = msgspec.structs.replace(box, syscalls=filter_path())
            box = filtering if filtering.syscalls and _try(filtering, "exit 42") else box
            return msgspec.structs.replace(box, can_count_processes=os.geteuid() != 0 and _try(box, _COUNTS))
    _refusal = ("not_working", "the system does not let bubblewrap (bwrap) work")
    return None


def explain_absence() -> _Absence:
    """Return why there is no sandbox, by name and in words; to be called when there is none. The first call blocks."""
    detect()
    return _refusal


def _try(box: Sandbox, script: str) -> bool:
    try:
        trial = subprocess.run(
            [
                *box.start(),
                *_isolation_options(),
                *box.tmpfs("/dev/shm", MAX_RUN),
                "--",
                "/bin/sh",
                "-c",
                script,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TRIAL_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 42


def _flat(groups: Iterable[Iterable[str]]) -> list[str]:
    return [word for group in groups for word in group]


def _cover(path: str) -> tuple[str, ...]:
    """Return the arguments that cover a file or a socket with an empty file."""
    return ("--ro-bind", "/dev/null", path)


def _stray(shown: Iterable[str], readable: Iterable[str], environ: Mapping[str, str]) -> set[str]:
    """Return credentials beside toolchains, except in what the user's settings show."""
    chosen = {os.path.realpath(path) for path in readable}
    found = map(os.path.realpath, find_stray_credentials(shown, environ))
    return {path for path in found if os.path.isfile(path) and not _is_within(path, chosen)}


def _between(folders: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Return the folders between a writable one and these paths, the outer first. Each becomes a mount: any other
    folder could be renamed and replaced, whatever is mounted beneath it.
    """
    found: set[str] = set()
    for path in paths:
        parent = os.path.dirname(path)
        while parent not in folders and _is_within(parent, folders):
            if os.path.isdir(parent):
                found.add(parent)
            parent = os.path.dirname(parent)
    return sorted(found)


def _make_read_only(path: str, folders: Sequence[str]) -> tuple[str, ...]:
    real = os.path.realpath(path)
    return ("--ro-bind", real, real) if _is_within(real, folders) and os.path.exists(real) else ()


def _isolation_options() -> tuple[str, ...]:
    return (*_ISOLATED, *_AS_ROOT) if os.geteuid() == 0 else _ISOLATED


def _guard(folder: str, project: str) -> Iterator[str]:
    """Make the files that decide what we run outside read-only; in the project also those that do not exist.

    A missing one becomes an empty folder, whatever it would be: git ignores that, and no file can be created in its
    place. A link cannot be pinned; its target can, and a changed link is a change that ends the trust.
    """
    for name in trusted_files.NAMES:
        path = os.path.join(folder, name)
        real = os.path.realpath(path)
        if os.path.lexists(path):
            if holds(folder, real) and os.path.exists(real):
                yield from ("--ro-bind", real, real)
        elif folder == project and os.access(folder, os.W_OK):
            yield from ("--tmpfs", path, "--remount-ro", path)


class MountPoints:
    """Tracks the mount points of one sandbox, and removes them when no other sandbox uses the project.

    Removing a mount point unmounts it in every running sandbox, of other sidecars too. So each holds a shared lock on
    the folder of the project while it runs, and only the holder of the exclusive lock removes them.
    """

    def __init__(self, project: str) -> None:
        self._project = project
        # A lock on the folder itself needs no lock file, which the command could remove.
        self._folder = os.open(project, os.O_RDONLY | os.O_DIRECTORY)
        self.hold()

    def hold(self) -> bool:
        """Take the shared lock; False while somebody has the folder alone, such as another sandbox that removes its
        mount points: what is planned meanwhile may be gone when it is mounted.
        """
        return self._lock(alone=False)

    def release(self, sockets: Iterable[str] = ()) -> None:
        """Release the lock after the sandbox has ended. `sockets` are those of the project that it was to cover."""
        # Upgraded without waiting: when it fails, another sandbox runs, and its end removes them.
        if self._lock(alone=True):
            remove_mount_points(self._project)
            _remove_covers(sockets)
        os.close(self._folder)

    def _lock(self, *, alone: bool) -> bool:
        try:
            fcntl.flock(self._folder, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def remove_mount_points(project: str) -> None:
    """Remove the empty folders that bubblewrap created for missing paths, also those that a killed one has left."""
    for name in trusted_files.NAMES:
        with suppress(OSError):  # it is missing, or not empty
            os.rmdir(os.path.join(project, name))


def _remove_covers(sockets: Iterable[str]) -> None:
    """Remove the empty files that bubblewrap created for sockets that had gone: no server could bind there again."""
    for path in sockets:
        with suppress(OSError):
            found = os.lstat(path)
            if found.st_mode == stat.S_IFREG | _COVER_MODE and not found.st_size:
                os.unlink(path)


def _is_folder(path: str) -> bool:
    """Return whether it is a folder itself, not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Drop paths within another of them: nothing can be mounted in a folder that is hidden already."""
    found = sorted(paths)
    return [path for path in found if not any(path != other and holds(other, path) for other in found)]


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(holds(folder, path) for folder in folders)
