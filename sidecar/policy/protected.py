"""Names that need a person's word each time: files whose change makes other programs run code, and files with secrets.

Pure text: a path is judged by its names, at any depth and however they are spelled (case, Unicode forms, trailing dots
and blanks, Windows' short names), also where nothing is there yet. Links are not looked at.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from functools import cache

from .tables import names as listed

_GIT = "git runs programs by it"
_HOOK = "it runs programs when something is committed"
_EDITOR = "an editor runs programs by it"
_AGENT = "it steers what agents do"
_SHELL = "it runs when a shell or a program starts"
_SECRET = "it holds keys or passwords"
_CI = "it runs programs on other machines"
_PACKAGES = "a package manager runs programs by it"

CHANGES: dict[str, str] = {
    _GIT: ".git git~1 .gitmodules .gitattributes .gitconfig .hg .hgrc .svn",
    _HOOK: ".husky .githooks .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.yml .lefthook",
    _EDITOR: ".vscode .idea .vs .fleet .zed .devcontainer .devcontainer.json .nvim.lua .nvimrc .vimrc .exrc"
    " .dir-locals.el *.code-workspace",
    _AGENT: ".claude .codex .gemini .cursor .sidecar .aider* .continue .windsurf .roo .kiro .junie .opencode"
    " .amazonq .agents .mcp.json mcp.json claude.md claude.local.md agents.md agents.override.md agent.md"
    " gemini.md .cursorrules .windsurfrules .clinerules .goosehints .github/copilot-instructions.md"
    " .github/instructions .github/prompts",
    _SHELL: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile"
    " .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .envrc .direnvrc .inputrc .gdbinit .lldbinit .tmux.conf"
    " .screenrc .config/fish .config/autostart .config/systemd launchagents .irbrc .pryrc .pythonrc .perldb",
    _CI: ".github/workflows .github/actions .gitlab-ci.yml .gitlab-ci.yaml .circleci .travis.yml jenkinsfile"
    " azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .buildkite"
    " .woodpecker .woodpecker.yml .forgejo .gitea",
    _PACKAGES: ".npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .yarn .pnpmfile.cjs pip.conf pip.ini sitecustomize.py"
    " usercustomize.py *.pth .cargo .bazelrc .bundle .mvn .mise.toml mise.toml .tool-versions .curlrc .wgetrc",
}
"""Names, or a few in a row, that always ask before they are changed; beneath a folder so named, everything does."""

SECRETS = """
    .env .env.* .ssh .gnupg .aws .azure .kube .config/gcloud .config/gh .docker/config.json .dockercfg
    .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .boto .s3cfg .vault-token
    .terraformrc .cargo/credentials .cargo/credentials.toml .gem/credentials credentials.json
    .password-store id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk *.pem *.key *.p12 *.pfx
    *.jks *.keystore *.kdbx *.tfstate etc/shadow etc/gshadow etc/sudoers proc/*/environ
"""
"""What asks before it is read, and before it is changed as well."""

NO_SECRETS = listed(".env.example .env.sample .env.template .env.dist .env.defaults")
"""Patterns of a .env, made to be shared."""


def protected(path: str) -> str | None:
    """Why changing this path always asks, or None."""
    plain = _plain(path)
    reason = next((reason for reason, pattern in _patterns().items() if pattern.search(plain)), None)
    return f"{_shown(path)} always asks: {reason}" if reason else None


def secret(path: str) -> str | None:
    """Why reading this path asks, or None."""
    return f"{_shown(path)} asks: {_SECRET}" if _patterns()[_SECRET].search(_plain(path)) else None


def normal(path: str) -> str:
    """The path without `.`, doubled slashes, and the names that `..` takes away."""
    found = posixpath.normpath(path)
    return found[1:] if found.startswith("//") else found


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """By reason; made when first asked for, as that takes as long as all of this module's import."""
    return {reason: _pattern(names) for reason, names in {**CHANGES, _SECRET: SECRETS}.items()}


def _pattern(names: str) -> re.Pattern[str]:
    """Finds any of the names, whole, in a path written with a slash on either side; a star stays within a name."""
    spelled = (re.escape(name).replace(r"\*", "[^/]*") for name in names.split())
    return re.compile(f"/({'|'.join(spelled)})/")


def _plain(path: str) -> str:
    """The path as the most forgiving file system reads it, between slashes; without a name that only looks secret."""
    if not path.isascii() or not path.isprintable():
        path = unicodedata.normalize("NFKC", path)
        path = "".join(char for char in path if unicodedata.category(char) not in ("Cf", "Cc"))
    names = normal(path.replace("\\", "/")).casefold().split("/")
    names = [name.partition(":")[0].strip().rstrip(". ") for name in names]
    return "/".join(["", *(name for name in names if name and name not in NO_SECRETS), ""])


def _shown(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"
