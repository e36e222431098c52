"""Names that always ask the user: files whose change makes other programs run code, and files with secrets.

Pure text: a path is judged by its names, at any depth and in any spelling (case, Unicode forms, trailing dots and
blanks, Windows short names), also when the file does not exist yet. Links are not resolved.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from functools import cache

from .tables import word_set as listed

_GIT = "git runs programs by it"
_HOOK = "it runs programs when something is committed"
_EDITOR = "an editor runs programs by it"
_AGENT = "it steers what agents do"
_SHELL = "it runs when a shell or a program starts"
_SECRET = "it holds keys or passwords"
_CI = "it runs programs on other machines"
_PACKAGES = "a package manager runs programs by it"

PROTECTED_NAMES: dict[str, str] = {
    _GIT: ".git git~1 .gitmodules .gitattributes .gitconfig .hg .hgrc .svn",
    _HOOK: ".husky .githooks .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.yml .lefthook",
    _EDITOR: ".vscode .theia .idea .vs .fleet .zed .helix .nova .devcontainer .devcontainer.json .nvim.lua .nvimrc"
    " .lazy.lua .vim .vimrc .lvimrc .exrc .dir-locals.el .dir-locals-2.el *.code-workspace",
    _AGENT: ".claude .codex .gemini .cursor .sidecar .aider* .continue .windsurf .roo .kiro .junie .opencode"
    " .amazonq .agents .qwen .copilot .github/hooks .codebuddy .codebuddy.json .kilo .kilocode .kimi-code .pi .omp"
    " .openclaw .codeium .trae .augment .factory .crush .roomodes .config/opencode .config/kilo .config/zed"
    " opencode.json opencode.jsonc kilo.json kilo.jsonc crush.json .crush.json mcp_config.json mcp-config.json"
    " .mcp.json mcp.json claude.md claude.local.md agents.md agents.override.md agent.md gemini.md qwen.md"
    " codebuddy.md crush.md warp.md .rules .cursorrules .windsurfrules .clinerules .goosehints"
    " .augment-guidelines .github/copilot-instructions.md .github/instructions .github/prompts .github/agents"
    " .github/chatmodes",
    _SHELL: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile"
    " .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .envrc .direnvrc .inputrc .gdbinit .lldbinit .tmux.conf"
    " .screenrc .config/fish .config/autostart .config/systemd launchagents .irbrc .pryrc .pythonrc .perldb .pdbrc"
    " .rprofile .renviron .octaverc .ghci .iex.exs .autoenv .autoenv.zsh .sbtopts .jvmopts",
    _CI: ".github/workflows .github/actions .gitlab-ci.yml .gitlab-ci.yaml .circleci .travis.yml jenkinsfile"
    " azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .buildkite"
    " .woodpecker .woodpecker.yml .forgejo .gitea .semaphore .teamcity .tekton .cirrus.yml .cirrus.star .gitpod.yml"
    " appveyor.yml .appveyor.yml .build.yml .builds",
    _PACKAGES: ".npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .yarn .pnpmfile.cjs pip.conf pip.ini sitecustomize.py"
    " usercustomize.py *.pth .cargo .bazelrc .bundle .mvn .mise .mise.toml mise.toml mise.local.toml"
    " .mise.local.toml .config/mise .tool-versions .pnp.cjs .pnp.loader.mjs bunfig.toml .curlrc .wgetrc",
}
"""Names, or sequences of names, that always ask before a change; everything in a folder with such a name does too."""

SECRET_NAMES = """
    .env .env.* .ssh .gnupg .aws .azure .kube .config/gcloud .config/gh .docker/config.json .dockercfg
    .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .boto .s3cfg .vault-token
    .terraformrc .cargo/credentials .cargo/credentials.toml .gem/credentials credentials.json
    .password-store id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk *.pem *.key *.p12 *.pfx
    *.jks *.keystore *.kdbx *.tfstate .mcp.json mcp.json .sidecar/config.toml .claude/settings.json
    .claude/settings.local.json .claude.json claude_desktop_config.json .gemini/settings.json .codex/config.toml
    .codex/auth.json .qwen/settings.json .codebuddy.json .codebuddy/settings.json opencode.json opencode.jsonc
    kilo.json kilo.jsonc crush.json .crush.json mcp_config.json mcp-config.json .openclaw/openclaw.json
    .zed/settings.json .config/zed/settings.json .sidecar/installation etc/shadow etc/gshadow etc/sudoers proc/*/environ
"""
"""What asks before it is read, and before it is changed as well. Settings of agents with MCP servers are among them:
the values of `env` and `headers` are often keys, whatever their names are.
"""

HARMLESS_NAMES = listed(".env.example .env.sample .env.template .env.dist .env.defaults")
"""Templates of a .env, made to be shared."""


def protected_reason(path: str) -> str | None:
    """Return why changing this path always asks, or None."""
    plain = _comparable_path(path)
    reason = next((reason for reason, pattern in _patterns().items() if pattern.search(plain)), None)
    reason = reason or (_SECRET if _is_secret(plain) else None)
    return f"{_short_path(path)} always asks: {reason}" if reason else None


def edit_reason(path: str) -> str | None:
    """Return why an edit of this path always asks, or None. Git recognises a folder as a repository by its `HEAD`;
    in a command that word is mostly a commit.
    """
    if reason := protected_reason(path):
        return reason
    return f"{_short_path(path)} always asks: {_GIT}" if _comparable_path(path).endswith("/head/") else None


def secret_reason(path: str) -> str | None:
    """Return why reading this path asks, or None. Copies that editors leave, such as `id_rsa~`, are secret too."""
    return f"{_short_path(path)} asks: {_SECRET}" if _is_secret(_comparable_path(path)) else None


def _is_secret(plain: str) -> bool:
    pattern = _patterns()[_SECRET]
    return bool(pattern.search(plain) or pattern.search(_without_copy_marks(plain)))


def is_watched(name: str) -> bool:
    """Return whether a file or folder of this name makes programs run on this machine, or controls agents. Wildcards
    and sequences of names are excluded: this is called for every file of a project.
    """
    return name.casefold() in _watched_names()


@cache
def _watched_names() -> frozenset[str]:
    found = (name for reason, names in PROTECTED_NAMES.items() if reason != _CI for name in names.split())
    return frozenset(name for name in found if "/" not in name and "*" not in name)


def normalized_path(path: str) -> str:
    """Return the path without `.`, doubled slashes, and resolved `..`."""
    found = posixpath.normpath(path)
    return found[1:] if found.startswith("//") else found


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Compiled patterns by reason; built on first use, as that takes as long as the import of this module."""
    return {reason: _pattern(names) for reason, names in {**PROTECTED_NAMES, _SECRET: SECRET_NAMES}.items()}


def _pattern(names: str) -> re.Pattern[str]:
    """Compile a pattern that finds any of the names, whole, in a path with a slash on either side; a star stays
    within a name.
    """
    spelled = (re.escape(name).replace(r"\*", "[^/]*") for name in names.split())
    return re.compile(f"/({'|'.join(spelled)})/")


def _comparable_path(path: str) -> str:
    """Return the path as the most tolerant file system reads it, between slashes; without harmless look-alikes of
    secrets.
    """
    if not path.isascii() or not path.isprintable():
        path = unicodedata.normalize("NFKC", path)
        path = "".join(char for char in path if unicodedata.category(char) not in ("Cf", "Cc"))
    names = normalized_path(path.replace("\\", "/")).casefold().split("/")
    names = [name.partition(":")[0].strip().rstrip(". ") for name in names]
    return "/".join(["", *(name for name in names if name and name not in HARMLESS_NAMES), ""])


_SWAP = re.compile(r"/\.(?P<name>[^/]+)\.sw[a-p](?=/)")
_COPY_MARKS = re.compile(
    r"(?<=[^/])(~|\.~[0-9]+|\.(bak|backup|orig|old|save|copy|tmp|dpkg-old|rpmsave|[0-9]{1,3}))(?=/)"
)
_EMACS_COPY = re.compile(r"/\.?#([^/]+?)#?(?=/)")


def _without_copy_marks(plain: str) -> str:
    """Return the path that a backup, swap or lock file of an editor is a copy of."""
    plain = _SWAP.sub(r"/\g<name>", _EMACS_COPY.sub(r"/\1", plain))
    while (shorter := _COPY_MARKS.sub("", plain)) != plain:
        plain = shorter
    return plain


def _short_path(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"
