"""Freezes an installed wheel with PyInstaller: a folder with a program in it, and one file that unpacks itself."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

ENTRY = Path(__file__).with_name("entry.py")

PACKAGES = ("sidecar", "sidecar_protocol", "jsonrpcserver", "rich", "tiktoken")
"""Collected with all their modules: they are imported by name when first used, which PyInstaller cannot see."""

MODULES = ("aiosqlite", "h11", "httptools", "idna", "pysqlite3", "regex", "tomlkit", "yaml")
DATA = ("sidecar", "sidecar_protocol", "jsonrpcserver")
METADATA = ("chat-sidecar", "mcp", "jsonrpcserver")

EXCLUDED = ("acp", "copilot", "keyring", "PySide6", "tkinter", "xllamacpp", "pip", "setuptools")
"""Optional packages, which stay out unless `--include` asks for one, and what the program never imports."""

TRIPLES = {
    ("linux", "x86_64"): "x86_64-unknown-linux-gnu",
    ("linux", "aarch64"): "aarch64-unknown-linux-gnu",
    ("darwin", "arm64"): "aarch64-apple-darwin",
    ("darwin", "x86_64"): "x86_64-apple-darwin",
    ("win32", "AMD64"): "x86_64-pc-windows-msvc",
}


def target_triple() -> str:
    """Return the name that Rust and Tauri have for this platform."""
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        sys.exit("binaries are built on Linux with glibc only; this system has another C library")
    try:
        return TRIPLES[sys.platform, platform.machine()]
    except KeyError:
        sys.exit(f"no target triple is known for {sys.platform} on {platform.machine()}")


def freeze(python: Path, build: Path, dist: Path, *, one_file: bool, include: list[str]) -> Path:
    """Freeze what is installed for `python` and return the program."""
    suffix = ".exe" if sys.platform == "win32" else ""
    name = f"sidecar-{target_triple()}" if one_file else "sidecar"
    command = [
        *(str(python), "-m", "PyInstaller", str(ENTRY), "--noconfirm", "--log-level", "ERROR", "--console"),
        *("--onefile" if one_file else "--onedir", "--name", name, "--distpath", str(dist)),
        *("--workpath", str(build / "work"), "--specpath", str(build)),
        *(word for package in PACKAGES for word in ("--collect-submodules", package)),
        *(word for package in DATA for word in ("--collect-data", package)),
        *(word for package in METADATA for word in ("--copy-metadata", package)),
        *(word for module in (*MODULES, *include) for word in ("--hidden-import", module)),
        *(word for module in EXCLUDED if module not in include for word in ("--exclude-module", module)),
    ]
    subprocess.run(command, check=True)
    return (dist / name / (name + suffix)) if not one_file else dist / (name + suffix)
