"""Builds the documentation site from the pages of the repository, so that links work there as they do on disk.

Pages keep their paths. A file or folder that a page links to and that is no page (a test, a transcript) becomes a
page with its text. What MkDocs reads differently from GitHub's Markdown is adapted in the copies. `make docs` runs it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = ROOT / "build" / "docs"

SOURCES = (
    "*.md",
    "docs/*.md",
    "docs/agents/*.md",
    "protocol/README.md",
    "protocol/reference/*.md",
    "protocol/transcripts/README.md",
    "clients/*/README.md",
    "clients/examples/*/README.md",
    "benchmarks/README.md",
    "tests/support/README.md",
)
LANGUAGES = {
    ".json": "json",
    ".jsonl": "json",
    ".mjs": "js",
    ".py": "python",
    ".sql": "sql",
    ".toml": "toml",
    ".ts": "ts",
}
MAX_SHOWN = 200_000
"""Bytes of a linked file that are shown as a page; a larger one is copied as it is."""

_LINK = re.compile(
    r"(?<=\]\()(?!\w+:)([^)\s#]+)(#[^)\s]*)?(?=\))|(?<=\]: )(?!\w+:)([^\s#]+)(#\S*)?$", re.MULTILINE
)
_PATH_LINK = re.compile(r"\[((?:[\w-]+/)*[\w-]+(?:\.md|/python|/typescript))\]\(([^)\s#]*\.md)(?=\))")
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)


def main() -> int:
    shutil.rmtree(PAGES, ignore_errors=True)
    sources = _sources()
    linked: set[Path] = set()
    for source in sources:
        text = _rewrite_links(source, source.read_text("utf-8"), set(sources), linked)
        _write(PAGES / source.relative_to(ROOT), _adapt(text))
    for path in linked:
        _copy(path)
    shutil.copy(HERE / "site.css", PAGES / "site.css")
    configuration = ROOT / "build" / "mkdocs.yml"
    _write(configuration, _configuration())
    command = [sys.executable, "-m", "mkdocs", "build", "--clean", "--config-file", str(configuration)]
    return subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode


def _rewrite_links(source: Path, text: str, pages: set[Path], linked: set[Path]) -> str:
    """Point links to files that are no pages at the pages made of them, which are added to `linked`."""

    def target(found: re.Match[str]) -> str:
        path, anchor = found[1] or found[3], found[2] or found[4] or ""
        file = (source.parent / path).resolve()
        if file.is_dir() and file / "README.md" in pages:
            return f"{path.rstrip('/')}/README.md{anchor}"
        if file in pages or not file.exists():
            return found[0]
        if file.with_name(f"{file.name}.md") not in pages:
            linked.add(file)
        return path.rstrip("/") + ("" if _is_copied(file) else ".md") + anchor

    def title(found: re.Match[str]) -> str:
        file = (source.parent / found[2]).resolve()
        return f"[{_title(file)}]({found[2]}" if file in pages else found[0]

    # On the site a page is known by its title, not by its path.
    return _outside_fences(text, lambda part: _LINK.sub(target, _PATH_LINK.sub(title, part)))


def _title(page: Path) -> str:
    found = re.search(r"^# (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def _is_copied(path: Path) -> bool:
    return path.is_file() and (path.stat().st_size > MAX_SHOWN or path.suffix == ".md")


def _copy(path: Path) -> None:
    name = path.relative_to(ROOT)
    if _is_copied(path):
        _write(PAGES / name, path.read_text("utf-8"))
        return
    language = LANGUAGES.get(path.suffix, "text")
    text = _list(path) if path.is_dir() else path.read_text("utf-8").rstrip("\n")
    fence = "`" * (max(2, *map(len, re.findall("`+", text)), 0) + 1)
    head = f"---\nsearch:\n  exclude: true\n---\n\n# {name.name}\n\n`{name}` of the repository.\n"
    _write(PAGES / f"{name}.md", f"{head}\n{fence}{language}\n{text}\n{fence}\n")


def _list(folder: Path) -> str:
    return "\n".join(sorted(f"{path.name}{'/' if path.is_dir() else ''}" for path in folder.glob("[!_.]*")))


def _adapt(text: str) -> str:
    """GitHub starts a list, a table or a block without a blank line before it; Python-Markdown does not."""
    text = re.sub(r"\A(?:<!--.*?-->\s*)+", "", text, flags=re.DOTALL)
    return _outside_fences(
        text, lambda part: re.sub(r"^(?![-*|\d ]|$)(.+)\n(?=[-*] |\|)", r"\1\n\n", part, flags=re.M)
    )


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def _configuration() -> str:
    """Return the configuration with all pages: folders of many pages are listed, and what it does not name comes last,
    under "More".
    """
    text = (
        (HERE / "mkdocs.yml").read_text("utf-8").replace("../../build/", "").replace("../../dist", "../dist")
    )
    for word, folder in (("AGENTS", "docs/agents"), ("REFERENCE", "protocol/reference")):
        indent = re.findall(rf"^( *){word}$", text, re.MULTILINE)[0]
        names = [str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).glob("*.md"))]
        text = text.replace(f"{indent}{word}\n", "".join(f"{indent}- {name}\n" for name in names))
    named = set(re.findall(r"^ +- (?:.*: )?(\S+\.md)$", text, re.MULTILINE))
    others = [name for page in _sources() if (name := str(page.relative_to(ROOT))) not in named]
    more = "".join(["  - More:\n", *(f"      - {name}\n" for name in others)]) if others else ""
    return text.replace("\nnot_in_nav:", f"{more}\nnot_in_nav:")


def _sources() -> list[Path]:
    return sorted({path for pattern in SOURCES for path in ROOT.glob(pattern)})


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
