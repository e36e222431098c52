"""The languages that code can be run in here: which program runs each, and how its files and words are spelled.

Looked for once, when first asked, by names on PATH; nothing is started but `node --version`, and that only where no
file tells the version. Runs no code.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping

import msgspec

TRIAL_S = 5.0
"""Node tells its version in some forty milliseconds."""

STRIPS_TYPES = (22, 18)
"""The first version of node that runs TypeScript as it is. 23.0 to 23.5 ask for an option; nobody is left on them."""

MODULE_LINE = re.compile(
    r"^\s*(import\s*[\w{*'\"]|export\s|(const|let|var)\s.*=\s*await\s|await\s)", re.MULTILINE
)
"""Only a module may say so; anything else is taken for a script, where `require` is known."""

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


class Runtime(msgspec.Struct, frozen=True):
    """How one program runs one language. In `build`, `run` and `environ`, `{file}` is the code, `{made}` what it is
    built into, `{scratch}` the folder of both and `{project}` the project's."""

    language: str
    program: str
    run: tuple[str, ...]
    suffix: str
    build: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    node_modules: bool = False
    """Whether the project's packages are looked for beside the code."""
    modules: bool = True
    """Whether it takes a module that is named as one."""

    def file(self, code: str) -> str:
        """The name of the file that holds the code."""
        if self.node_modules and self.modules and MODULE_LINE.search(code):
            return f"main.m{self.suffix[1:]}"
        return "main.cjs" if self.language == "javascript" else f"main{self.suffix}"

    def text(self, code: str) -> str:
        """What that file holds."""
        return f"<?php\n{code}" if self.language == "php" and "<?" not in code else code


class _Way(msgspec.Struct, frozen=True):
    """A program that may be there, and how it would run a language."""

    program: str
    run: tuple[str, ...] = ("{program}", "{file}")
    build: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    works: Callable[[str], bool] = lambda program: True
    modules: bool = True


_DENO = _Way("deno", ("{program}", "run", "--allow-all", "{file}"), environ={"DENO_DIR": "{scratch}/deno"})
_BUN = _Way("bun", ("{program}", "run", "{file}"))
_TS_NODE = _Way(
    "ts-node",
    (
        *("{program}", "--transpile-only", "--skip-project"),
        *("--compilerOptions", '{"module":"commonjs","esModuleInterop":true}', "{file}"),
    ),
    modules=False,
)
_PYTHON = {"PYTHONPATH": "{project}", "PYTHONUNBUFFERED": "1"}

_WAYS: dict[str, tuple[str, tuple[_Way, ...]]] = {
    "python": (".py", (_Way("python3", environ=_PYTHON), _Way("python", environ=_PYTHON))),
    "javascript": (".js", (_Way("node"), _DENO, _BUN)),
    "typescript": (
        ".ts",
        (
            _Way("node", works=lambda program: _strips_types(program)),
            _DENO,
            _BUN,
            _Way("tsx"),
            _TS_NODE,
        ),
    ),
    "shell": (".sh", (_Way("bash"), _Way("sh"))),
    "ruby": (".rb", (_Way("ruby", ("{program}", "-I", "{project}", "{file}")),)),
    "go": (
        ".go",
        (
            _Way(
                "go",
                ("{made}",),
                ("{program}", "build", "-o", "{made}", "{file}"),
                {"GOCACHE": "{scratch}/cache", "GOTOOLCHAIN": "local"},
            ),
        ),
    ),
    "rust": (
        ".rs",
        (_Way("rustc", ("{made}",), ("{program}", "--edition", "2021", "-o", "{made}", "{file}")),),
    ),
    "php": (".php", (_Way("php"),)),
    "perl": (".pl", (_Way("perl", ("{program}", "-I", "{project}", "{file}")),)),
    "r": (".R", (_Way("Rscript", ("{program}", "--vanilla", "{file}")),)),
    "elixir": (".exs", (_Way("elixir"),)),
}


def installed() -> Mapping[str, Runtime]:
    """What can be run here, by language. Blocking when it is first asked."""
    return found(os.environ.get("PATH", os.defpath))


def is_known() -> bool:
    """Whether `installed` answers at once."""
    return found.cache_info().currsize > 0


@functools.cache
def found(path: str) -> Mapping[str, Runtime]:
    """What is there on this PATH."""
    runtimes = (_found(language, path) for language in _WAYS)
    return {runtime.language: runtime for runtime in runtimes if runtime}


def _found(language: str, path: str) -> Runtime | None:
    import shutil

    suffix, ways = _WAYS[language]
    for way in ways:
        program = shutil.which(way.program, path=path)
        if program is None and way.program == "python":
            program = sys.executable
        if not program or not os.path.isabs(program) or not way.works(program):
            continue
        run, build = (
            tuple(program if word == "{program}" else word for word in words)
            for words in (way.run, way.build)
        )
        node_modules = language in ("javascript", "typescript")
        return Runtime(language, program, run, suffix, build, way.environ, node_modules, way.modules)
    return None


def _strips_types(node: str) -> bool:
    version = _version_of_header(node) or _version_of_program(node)
    return version is not None and version >= STRIPS_TYPES


def _version_of_header(node: str) -> tuple[int, int] | None:
    """Node's own header lies beside it in most installations, and is read much faster than node starts."""
    folder = os.path.dirname(os.path.dirname(os.path.realpath(node)))
    try:
        with open(os.path.join(folder, "include/node/node_version.h"), encoding="utf-8") as file:
            text = file.read(4096)
    except (OSError, UnicodeDecodeError):
        return None
    major = re.search(r"#define NODE_MAJOR_VERSION (\d+)", text)
    minor = re.search(r"#define NODE_MINOR_VERSION (\d+)", text)
    return (int(major[1]), int(minor[1])) if major and minor else None


def _version_of_program(node: str) -> tuple[int, int] | None:
    try:
        told = subprocess.run(
            [node, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(rb"v(\d+)\.(\d+)", told.stdout)
    return (int(match[1]), int(match[2])) if match else None
