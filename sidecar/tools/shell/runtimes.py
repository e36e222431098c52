"""The languages that code can be run in here: which program runs each, with which files and arguments.

Programs are searched once, by names on PATH; only `node --version` is started for that, when no file holds the
version. A name is no proof: `rustc` may be a shim of rustup without a toolchain. So a program is tried when its
language is needed (`first_working`), and one that does not run counts as not installed. Runs no code of the model, and
nothing that a command may have written.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ...system.helper_programs import is_frozen
from ...system.lazy import lazy_module
from ...system.programs import is_writable, own_environment

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")

TRIAL_S = 10.0
"""Seconds: programs print their version in some forty milliseconds, Elixir in half a second; a busy machine takes
longer.
"""

TRIAL_BYTES = 4096
"""Bytes: more than a version takes; the rest of the output is not read."""

RETRY_S = 60.0
"""Seconds until a program that did not run is tried again: it may have been installed, or the machine was busy."""

TYPE_STRIPPING_NODE = (22, 18)
"""The first version of node that runs TypeScript directly. 23.0 to 23.5 need an option and are no longer supported."""

MODULE_LINE = re.compile(
    r"^\s*(import\s*[\w{*'\"]|export\s|(const|let|var)\s.*=\s*await\s|await\s)", re.MULTILINE
)
"""Only a module may contain these; anything else is taken for a script, where `require` is defined."""

ALIASES = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "node": "javascript",
    "ts": "typescript",
    "bash": "shell",
    "sh": "shell",
    "rb": "ruby",
    "golang": "go",
    "rs": "rust",
    "rscript": "r",
    "ex": "elixir",
    "exs": "elixir",
}


_LOADS_CODE = re.compile(
    r"^(BASH_ENV|ENV|CLASSPATH|JAVA_TOOL_OPTIONS)$|^(NODE|PYTHON|RUBY|PERL|LUA|PHP|R|ELIXIR|ERL)_?.*"
    r"(PATH|LIB|LIBS|OPT|OPTS|OPTIONS|FLAGS|STARTUP|HOME|ZFLAGS|INI_SCAN_DIR|PROFILE)$"
)
"""Variables that make an interpreter load files."""


class Runtime(msgspec.Struct, frozen=True):
    """How one program runs one language. In `build`, `run` and `environ`, `{file}` is the code, `{made}` the build
    result, `{scratch}` the folder of both and `{project}` that of the project.
    """

    language: str
    program: str
    run: tuple[str, ...]
    suffix: str
    build: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    node_modules: bool = False
    """Whether the packages of the project are made importable."""
    modules: bool = True
    """Whether it takes a module that is named as one."""
    trial: tuple[str, ...] = ("--version",)
    """Arguments of the trial run: it must print something and exit with 0."""
    otherwise: Runtime | None = None
    """Other programs for the language, when this one does not run."""

    def file(self, code: str) -> str:
        """Return the name of the file that holds the code."""
        if self.node_modules and self.modules and MODULE_LINE.search(code):
            return f"main.m{self.suffix[1:]}"
        return "main.cjs" if self.language == "javascript" else f"main{self.suffix}"

    def text(self, code: str) -> str:
        """Return the content of that file."""
        return f"<?php\n{code}" if self.language == "php" and "<?" not in code else code


class RuntimeBroken(Exception):
    """No program of a language runs; the message says which were tried, and how they fail."""


class _RuntimeOption(msgspec.Struct, frozen=True):
    """A program that may be installed, and how it would run a language."""

    program: str
    run: tuple[str, ...] = ("{program}", "{file}")
    build: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    works: Callable[[str], bool] = lambda program: True
    modules: bool = True
    trial: tuple[str, ...] = ("--version",)


_DENO = _RuntimeOption(
    "deno", ("{program}", "run", "--allow-all", "{file}"), environ={"DENO_DIR": "{scratch}/deno"}
)
_BUN = _RuntimeOption("bun", ("{program}", "run", "{file}"))
_TS_NODE = _RuntimeOption(
    "ts-node",
    (
        *("{program}", "--transpile-only", "--skip-project"),
        *("--compilerOptions", '{"module":"commonjs","esModuleInterop":true}', "{file}"),
    ),
    modules=False,
)
_PYTHON = {"PYTHONPATH": "{project}", "PYTHONUNBUFFERED": "1"}

_RUNTIME_OPTIONS: dict[str, tuple[str, tuple[_RuntimeOption, ...]]] = {
    "python": (
        ".py",
        (_RuntimeOption("python3", environ=_PYTHON), _RuntimeOption("python", environ=_PYTHON)),
    ),
    "javascript": (".js", (_RuntimeOption("node"), _DENO, _BUN)),
    "typescript": (
        ".ts",
        (
            _RuntimeOption("node", works=lambda program: _strips_types(program)),
            _DENO,
            _BUN,
            _RuntimeOption("tsx"),
            _TS_NODE,
        ),
    ),
    "shell": (".sh", (_RuntimeOption("bash"), _RuntimeOption("sh", trial=("-c", "echo 1")))),
    "ruby": (".rb", (_RuntimeOption("ruby", ("{program}", "-I", "{project}", "{file}")),)),
    "go": (
        ".go",
        (
            _RuntimeOption(
                "go",
                ("{made}",),
                ("{program}", "build", "-o", "{made}", "{file}"),
                {"GOCACHE": "{scratch}/cache", "GOTOOLCHAIN": "local"},
                trial=("version",),
            ),
        ),
    ),
    "rust": (
        ".rs",
        (_RuntimeOption("rustc", ("{made}",), ("{program}", "--edition", "2021", "-o", "{made}", "{file}")),),
    ),
    "php": (".php", (_RuntimeOption("php"),)),
    "perl": (".pl", (_RuntimeOption("perl", ("{program}", "-I", "{project}", "{file}")),)),
    "r": (
        ".R",
        (
            _RuntimeOption(
                "Rscript", ("{program}", "--vanilla", "{file}"), trial=("--vanilla", "-e", "cat(1)")
            ),
        ),
    ),
    "elixir": (".exs", (_RuntimeOption("elixir"),)),
}


def installed_runtimes() -> Mapping[str, Runtime]:
    """Return the runtimes by language: found on PATH, and not known to fail. The first call blocks.

    A launcher is tried at once: it is there without the compiler that it starts. Others are tried when they are used.
    """
    candidates = find_runtimes(os.environ.get("PATH", os.defpath))
    for runtime in candidates.values():
        if _is_launcher(runtime.program):
            with suppress(RuntimeBroken):
                first_working(runtime)
    return {name: runtime for name, runtime in candidates.items() if not is_broken(runtime)}


def _is_launcher(program: str) -> bool:
    return os.path.basename(os.path.realpath(program)) in _LAUNCHERS


def first_working(runtime: Runtime) -> Runtime:
    """Return the first program that runs, of this one and its alternatives. Blocks for at most TRIAL_S each.

    Raises RuntimeBroken when none does.
    """
    fault = _fault(runtime.program, runtime.trial)
    if fault is None:
        return runtime
    if runtime.otherwise is not None:
        with suppress(RuntimeBroken):
            return first_working(runtime.otherwise)
    raise RuntimeBroken(f"{runtime.program} {fault}")


def is_broken(runtime: Runtime) -> bool:
    """Return whether every program of the language was tried and failed. Tries none."""
    tried = _trials.get((runtime.program, runtime.trial))
    if tried is None or tried[1] is None:
        return False
    return runtime.otherwise is None or is_broken(runtime.otherwise)


def is_detected() -> bool:
    """Return whether `installed_runtimes` returns at once."""
    return find_runtimes.cache_info().currsize > 0


@functools.cache
def find_runtimes(path: str) -> Mapping[str, Runtime]:
    """Return the runtimes on this PATH."""
    runtimes = (_find_runtime(language, path) for language in _RUNTIME_OPTIONS)
    return {runtime.language: runtime for runtime in runtimes if runtime}


def _find_runtime(language: str, path: str) -> Runtime | None:
    suffix, ways = _RUNTIME_OPTIONS[language]
    chosen: Runtime | None = None
    for way in reversed(ways):
        program = shutil.which(way.program, path=path)
        if program is None and way.program == "python" and not is_frozen():
            program = sys.executable
        if not program or not os.path.isabs(program) or not way.works(program):
            continue
        run, build = (
            tuple(program if word == "{program}" else word for word in words)
            for words in (way.run, way.build)
        )
        chosen = Runtime(
            language,
            program,
            run,
            suffix,
            build,
            way.environ,
            node_modules=language in ("javascript", "typescript"),
            modules=way.modules,
            trial=way.trial,
            otherwise=chosen,
        )
    return chosen


_LAUNCHERS = frozenset(("rustup", "rustup-init", "mise", "asdf", "volta-shim"))
"""Programs that many names link to, and that start what the user has installed by them."""

_trials: dict[tuple[str, tuple[str, ...]], tuple[float, str | None]] = {}
"""When a program was last tried, and how it failed. Written by any thread: a second trial does no harm."""


def _fault(program: str, trial: tuple[str, ...]) -> str | None:
    """Return how the program fails, or None when it runs. A success is cached for good, a failure for RETRY_S."""
    if is_writable(program):
        # A command could have put it there, and a trial is not confined. It is run in the sandbox only.
        return None
    key = (program, trial)
    tried = _trials.get(key)
    if tried is None or (tried[1] is not None and time.monotonic() - tried[0] > RETRY_S):
        tried = _trials[key] = (time.monotonic(), _run_trial(program, trial)[1])
    return tried[1]


def _run_trial(program: str, trial: tuple[str, ...]) -> tuple[bytes, str | None]:
    """Return its output, and how it failed if it did. Always ends, and no process of it survives."""
    try:
        process = subprocess.Popen(
            [program, *trial],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_trial_environment(),
            start_new_session=True,
        )
    except OSError as error:
        return b"", f"cannot be started: {error.strerror or error}"
    # A shim's children may hold the pipe open forever, so the whole group is killed and the pipe is not awaited.
    timer = threading.Timer(TRIAL_S, _kill_group, (process,))
    timer.start()
    assert process.stdout is not None
    try:
        printed = process.stdout.read(TRIAL_BYTES)
        code = process.wait()
    finally:
        expired = not timer.is_alive()
        timer.cancel()
        _kill_group(process)
        process.stdout.close()
    if expired:
        return printed, f"did not answer in {TRIAL_S:.0f} s"
    if code:
        return printed, f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
    return printed, None if printed.strip() else "printed nothing"


def _trial_environment() -> dict[str, str]:
    """Return an environment in which nothing of a project is loaded or started, such as `NODE_OPTIONS` with a file of
    it.
    """
    kept = own_environment(os.environ)
    return {name: value for name, value in kept.items() if not _LOADS_CODE.search(name)}


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _strips_types(node: str) -> bool:
    version = _version_from_header(node)
    if version is None and not is_writable(node):
        version = _version_from_program(node)
    return version is not None and version >= TYPE_STRIPPING_NODE


def _version_from_header(node: str) -> tuple[int, int] | None:
    """Return the version in node's header file, which most installations have and which is much faster than starting
    node.
    """
    folder = os.path.dirname(os.path.dirname(os.path.realpath(node)))
    try:
        with open(os.path.join(folder, "include/node/node_version.h"), encoding="utf-8") as file:
            text = file.read(4096)
    except (OSError, UnicodeDecodeError):
        return None
    major = re.search(r"#define NODE_MAJOR_VERSION (\d+)", text)
    minor = re.search(r"#define NODE_MINOR_VERSION (\d+)", text)
    return (int(major[1]), int(minor[1])) if major and minor else None


def _version_from_program(node: str) -> tuple[int, int] | None:
    printed, _ = _run_trial(node, ("--version",))
    match = re.match(rb"v(\d+)\.(\d+)", printed)
    return (int(match[1]), int(match[2])) if match else None
