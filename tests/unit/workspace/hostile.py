"""Repositories that try to have a program run, or a file read, by whoever asks git what has changed in them.

Each plants a program that leaves a trace when it runs. A repository is made by real git, then tampered with.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

SECRET = "the secret outside"
EVIL = "evil"


class Scene:
    """`project` is a repository with a commit and a change; `outside` has a secret; `trace` is there when a planted
    program ran."""

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.project = self.base / "project"
        self.outside = self.base / "outside"
        self.trace = self.base / "trace"
        self.environ: dict[str, str] = {}
        self.outside.mkdir()
        (self.outside / "a.txt").write_text(f"{SECRET}\n")
        self.repository(self.project)
        self.program = self.outside / EVIL
        self.plant(self.program)

    def plant(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "$0" >> {self.trace}\n')
        path.chmod(0o755)

    def repository(self, folder: Path, text: str = "one\n") -> None:
        """With `a.txt` committed and changed since."""
        folder.mkdir()
        self.git("init", "-q", "-b", "main", folder=folder)
        (folder / "a.txt").write_text(text)
        self.git("add", ".", folder=folder)
        self.git("commit", "-q", "-m", "first", folder=folder)
        (folder / "a.txt").write_text(text + "two\n")

    def git(self, *command: str, folder: Path | None = None) -> bytes:
        return subprocess.run(
            ["git", *command], cwd=folder or self.project, env=clean(), check=True, capture_output=True
        ).stdout

    def config(self, name: str, value: str | None = None) -> None:
        self.git("config", name, value if value is not None else str(self.program))

    def attributes(self, text: str = f"*.txt filter={EVIL} diff={EVIL} merge={EVIL}\n") -> None:
        (self.project / ".gitattributes").write_text(text)

    def append(self, path: str, text: str) -> None:
        with open(self.project / path, "a") as file:
            file.write(text)

    def ran(self) -> list[str]:
        """The traces: what ran, and what git was led to write."""
        strays = [str(path) for path in self.project.glob("**/stray*")]
        return [*(self.trace.read_text().splitlines() if self.trace.exists() else []), *strays]


def clean() -> dict[str, str]:
    """An environment in which git knows who commits, and nothing else of the machine."""
    who = {
        f"GIT_{role}_{what}": "x@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    nothing = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": "/nonexistent"}
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **who, **nothing}


Plant = Callable[[Scene], None]


def _setting(*names: str, attributes: bool = False) -> Plant:
    def plant(scene: Scene) -> None:
        if attributes:
            scene.attributes()
        for name in names:
            scene.config(name)

    return plant


def _hook(scene: Scene) -> None:
    for name in ("post-index-change", "pre-commit", "fsmonitor-watchman", "post-checkout"):
        scene.plant(scene.project / ".git/hooks" / name)


def _hooks_path(scene: Scene) -> None:
    scene.plant(scene.project / "hooks/post-index-change")
    scene.config("core.hooksPath", "hooks")


def _aliases(scene: Scene) -> None:
    for name in ("diff", "config", "ls-files"):
        scene.config(f"alias.{name}", f"!{scene.program}")


def _include(scene: Scene) -> None:
    (scene.project / "more").write_text(f"[core]\n\tfsmonitor = {scene.program}\n")
    scene.config("include.path", "../more")


def _include_if(scene: Scene) -> None:
    (scene.project / "more").write_text(f"[diff]\n\texternal = {scene.program}\n")
    scene.config("includeIf.gitdir:/.path", "../more")


def _worktree_config(scene: Scene) -> None:
    scene.config("extensions.worktreeConfig", "true")
    (scene.project / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {scene.program}\n")


def _info_attributes(scene: Scene) -> None:
    (scene.project / ".git/info/attributes").write_text(f"* filter={EVIL}\n")
    scene.config(f"filter.{EVIL}.clean")


def _attributes_file(scene: Scene) -> None:
    (scene.outside / "attributes").write_text(f"* diff={EVIL}\n")
    scene.config("core.attributesFile", str(scene.outside / "attributes"))
    scene.config(f"diff.{EVIL}.textconv")


def _required_filter(scene: Scene) -> None:
    _setting(f"filter.{EVIL}.clean", f"filter.{EVIL}.process", attributes=True)(scene)
    scene.config(f"filter.{EVIL}.required", "true")


def _odd_attributes(scene: Scene) -> None:
    scene.attributes(
        "*.txt working-tree-encoding=UTF-16 ident eol=crlf -diff\n[attr]x diff=y\n" + "\\" * 3000
    )


def _submodule(scene: Scene) -> None:
    inner = scene.base / "inner"
    scene.repository(inner)
    scene.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    scene.git("commit", "-q", "-m", "sub")
    scene.git("config", "core.fsmonitor", str(scene.program), folder=scene.project / "sub")
    scene.git("config", "diff.external", str(scene.program), folder=scene.project / "sub")
    scene.append("sub/a.txt", "changed\n")
    scene.config("diff.submodule", "diff")


def _gitmodules(scene: Scene) -> None:
    _submodule(scene)
    scene.append(".gitmodules", f'[submodule "sub"]\n\tupdate = !{scene.program}\n\tignore = none\n')


def _dashes(scene: Scene) -> None:
    for name in ("-x", "--output=stray", "--ext-diff", "--no-index", "-c", "--upload-pack=x"):
        (scene.project / name).write_text("old\n")
    scene.git("add", "--all")
    scene.git("commit", "-q", "-m", "names")
    for name in ("-x", "--output=stray", "--ext-diff"):
        scene.append(name, "new\n")


def _line_breaks(scene: Scene) -> None:
    names = [
        "a\nb.txt",
        "x\n\ndiff --git a/y b/y\n.txt",
        "tab\t.txt",
        '"quoted".txt',
        ":100644 x.txt",
        ":(top)a",
    ]
    for name in names:
        (scene.project / name.replace("/", "_")).write_text("old\n")
    scene.git("add", "--all")
    scene.git("commit", "-q", "-m", "names")
    for name in names:
        scene.append(name.replace("/", "_"), "new\n")


def _huge(scene: Scene) -> None:
    scene.append("a.txt", "".join(f"line {number}\n" for number in range(400_000)))


def _fifos(scene: Scene) -> None:
    os.unlink(scene.project / "a.txt")
    os.mkfifo(scene.project / "a.txt")
    os.mkfifo(scene.project / "untracked")


def _git_fifo(name: str) -> Plant:
    def plant(scene: Scene) -> None:
        (scene.project / ".git" / name).unlink()
        os.mkfifo(scene.project / ".git" / name)

    return plant


def _elsewhere(scene: Scene) -> None:
    scene.config("core.worktree", str(scene.outside))


def _git_file(scene: Scene) -> None:
    scene.repository(scene.base / "other", f"{SECRET}\n")
    os.rename(scene.project / ".git", scene.base / "old")
    (scene.project / ".git").write_text(f"gitdir: {scene.base}/other/.git\n")


def _git_link(scene: Scene) -> None:
    scene.repository(scene.base / "other", f"{SECRET}\n")
    os.rename(scene.project / ".git", scene.base / "old")
    os.symlink("../other/.git", scene.project / ".git")


def _linked_inside(name: str) -> Plant:
    """A part of the repository is a link to the same part of another one."""

    def plant(scene: Scene) -> None:
        scene.repository(scene.base / "other", f"{SECRET}\n")
        os.rename(scene.project / ".git" / name, scene.base / "old")
        os.symlink(scene.base / "other/.git" / name, scene.project / ".git" / name)

    return plant


def _alternates(scene: Scene) -> None:
    scene.repository(scene.base / "other", f"{SECRET}\n")
    (scene.project / ".git/objects/info/alternates").write_text(f"{scene.base}/other/.git/objects\n")
    head = scene.git("rev-parse", "HEAD", folder=scene.base / "other").strip()
    (scene.project / ".git/refs/heads/main").write_bytes(head + b"\n")


def _bare(scene: Scene) -> None:
    """The project itself looks like a repository without a work tree, as one may come inside another."""
    for name in os.listdir(scene.project / ".git"):
        os.rename(scene.project / ".git" / name, scene.project / name)
    os.rmdir(scene.project / ".git")
    with open(scene.project / "config", "a") as file:
        file.write(f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {scene.program}\n")


def _promisor(scene: Scene) -> None:
    """What is missing is fetched by a transport that is any command."""
    blob = scene.git("rev-parse", "HEAD:a.txt").decode().strip()
    os.unlink(scene.project / ".git/objects" / blob[:2] / blob[2:])
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{scene.program}",
        "protocol.ext.allow": "always",
    }.items():
        scene.config(name, value)


def _link_to_secret(scene: Scene) -> None:
    os.unlink(scene.project / "a.txt")
    os.symlink("../outside/a.txt", scene.project / "a.txt")


def _folder_to_outside(scene: Scene) -> None:
    (scene.project / "folder").mkdir()
    (scene.project / "folder/a.txt").write_text("old\n")
    scene.git("add", "folder")
    scene.git("commit", "-q", "-m", "folder", "--", "folder")
    os.unlink(scene.project / "folder/a.txt")
    os.rmdir(scene.project / "folder")
    os.symlink("../outside", scene.project / "folder")


def _environment(scene: Scene) -> None:
    """Not of the repository: what the sidecar itself was started with."""
    names = ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_ASKPASS")
    scene.environ = {name: str(scene.program) for name in names}
    scene.environ |= {"GIT_DIR": str(scene.outside), "GIT_WORK_TREE": str(scene.outside)}
    scene.environ |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor"}
    scene.environ |= {"GIT_CONFIG_VALUE_0": str(scene.program), "GIT_TRACE": str(scene.trace)}


HOSTILE: Mapping[str, Plant] = {
    "fsmonitor": _setting("core.fsmonitor"),
    "external diff": _setting("diff.external"),
    "diff command": _setting(f"diff.{EVIL}.command", attributes=True),
    "textconv": _setting(f"diff.{EVIL}.textconv", attributes=True),
    "clean filter": _setting(f"filter.{EVIL}.clean", attributes=True),
    "process filter": _setting(f"filter.{EVIL}.process", attributes=True),
    "smudge filter": _setting(f"filter.{EVIL}.smudge", attributes=True),
    "required filter": _required_filter,
    "info attributes": _info_attributes,
    "attributes file": _attributes_file,
    "odd attributes": _odd_attributes,
    "hooks": _hook,
    "hooks path": _hooks_path,
    "pager": _setting("core.pager", "pager.diff", "interactive.diffFilter"),
    "aliases": _aliases,
    "include": _include,
    "conditional include": _include_if,
    "worktree config": _worktree_config,
    "ssh command": _setting("core.sshCommand", "core.gitProxy", "core.alternateRefsCommand"),
    "editor": _setting("core.editor", "sequence.editor"),
    "signing program": _setting("gpg.program", "gpg.ssh.program"),
    "credential helper": _setting("credential.helper", "core.askPass"),
    "tools": _setting("diff.tool", "difftool.x.cmd", "merge.evil.driver", attributes=True),
    "submodule": _submodule,
    "gitmodules": _gitmodules,
    "names with dashes": _dashes,
    "names with line breaks": _line_breaks,
    "huge diff": _huge,
    "pipes in the tree": _fifos,
    "index is a pipe": _git_fifo("index"),
    "config is a pipe": _git_fifo("config"),
    "HEAD is a pipe": _git_fifo("HEAD"),
    "work tree elsewhere": _elsewhere,
    "git file": _git_file,
    "git link": _git_link,
    "linked objects": _linked_inside("objects"),
    "linked index": _linked_inside("index"),
    "linked HEAD": _linked_inside("HEAD"),
    "linked config": _linked_inside("config"),
    "alternates": _alternates,
    "bare": _bare,
    "promisor": _promisor,
    "link to a secret": _link_to_secret,
    "folder that became a link": _folder_to_outside,
    "environment": _environment,
}

REFUSED = {
    "index is a pipe",
    "config is a pipe",
    "HEAD is a pipe",
    "work tree elsewhere",
    "git file",
    "git link",
    "linked objects",
    "linked index",
    "linked HEAD",
    "linked config",
    "alternates",
    "bare",
}
"""Those of which nothing is reported; of all others what is staged is, and mostly what is not."""

UNREADABLE = {"promisor", "pipes in the tree"}
"""Those whose unstaged changes git itself cannot tell."""

CAUGHT = {
    "fsmonitor",
    "external diff",
    "diff command",
    "textconv",
    "clean filter",
    "process filter",
    "required filter",
    "info attributes",
    "attributes file",
    "include",
    "conditional include",
    "promisor",
    "environment",
}
"""Those that find a plain `git diff` out, with every git of the last years."""
