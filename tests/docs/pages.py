"""Takes the project's pages apart: fenced blocks, links, and the commands that they name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def read_page(name: str) -> str:
    """A page of the repository, by its path from the root."""
    return (ROOT / name).read_text("utf-8")


README = read_page("README.md")
ARCHITECTURE = read_page("ARCHITECTURE.md")
CONTRIBUTING = read_page("CONTRIBUTING.md")
EMBED = read_page("docs/embed.md")
FIGURES = read_page("docs/figures.md")
GLOSSARY = read_page("GLOSSARY.md")
PROVIDERS = read_page("docs/providers.md")
SHIPPING = read_page("docs/shipping.md")
TERMINAL = read_page("docs/terminal.md")

LINKED = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "docs/agents/*.md", "clients/python/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
)
"""The pages whose links are followed."""

FIRST = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
    "CODE_OF_CONDUCT.md",
    "docs/comparison.md",
    "docs/compatibility.md",
    "docs/embed.md",
    "docs/features.md",
    "docs/figures.md",
    "docs/guarantees.md",
    "docs/providers.md",
    "docs/terminal.md",
)
"""The pages that the README links to."""

DETAILS = (
    "CHANGELOG.md",
    "RELIABILITY.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "clients/python/README.md",
    "docs/chat-ui.md",
    "docs/code.md",
    "docs/configuration.md",
    "docs/context.md",
    "docs/data.md",
    "docs/denials.md",
    "docs/fake-provider.md",
    "docs/fetch.md",
    "docs/hooks.md",
    "docs/index.md",
    "docs/media.md",
    "docs/scripted.md",
    "docs/supervision.md",
    "docs/tools.md",
)
"""The pages behind those, whose tables may have wide cells."""

PLAIN = FIRST + DETAILS
"""The pages that are held to short lines and to the glossary."""


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks in `language`, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def block_with(page: str, language: str, text: str) -> str:
    """The one block in `language` that contains `text`."""
    (found,) = [block for block in blocks(page, language) if text in block]
    return found


def code(page: str) -> list[str]:
    """Everything that is written as code: the lines of fenced blocks without their comments, and spans."""
    fenced = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    lines = [line.partition("# ")[0] for block in fenced for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", prose)


def links(page: str) -> list[str]:
    """Where the page's links lead within the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", page) + re.findall(r"^\[[^\]]+\]: (\S+)$", page, re.MULTILINE)
    return [target for target in targets if "://" not in target]


def headings(page: str) -> set[str]:
    """The anchors of the page's headings."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def makes(page: str) -> set[str]:
    """The targets that the page tells to make."""
    return {name for line in code(page) for name in re.findall(r"(?:^|\s)make ([a-z-]+)", line)}


def sidecar_commands(page: str) -> set[str]:
    """The words that stand as a command behind `sidecar`."""
    return {
        name for line in code(page) for name in re.findall(r"(?:^|[\s/])sidecar ([a-z]+(?:-[a-z]+)*)", line)
    }
