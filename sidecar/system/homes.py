"""What a sandboxed command sees of home folders: toolchains and download caches, read-only, and nothing else.

Lists which folders are homes, which parts of them are visible, and where a user's credentials are. Mounts nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from .environment import looks_secret
from .folders import holds
from .safe_open import FileRefused, open_regular

if sys.platform != "win32":
    import pwd


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SYSTEM = (
    "/usr",
    "/etc",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix",
    "/dev",
    "/proc",
    "/sys",
    "/boot",
)
"""Service accounts have homes such as `/usr/sbin` or `/`: hiding those would hide the programs themselves."""

CREDENTIALS = _names(
    """
    .ssh .gnupg .aws .azure .kube .docker .dockercfg .password-store .oci .boto .config/sidecar
    .config/gh .config/hub .config/glab-cli .config/gcloud .config/op .config/git/credentials
    .config/containers .config/doctl .config/heroku .config/rclone .config/google-chrome
    .config/chromium .config/BraveSoftware .config/Code .config/Cursor .config/github-copilot
    .config/pip .config/composer/auth.json .config/Slack .config/discord .config/anthropic
    .config/openai .config/llm .config/io.datasette.llm .config/stripe .local/share/sidecar
    .local/share/keyrings .local/share/uv/credentials .local/share/kwalletd
    .local/share/jupyter/runtime .mozilla .thunderbird .netrc _netrc .authinfo .authinfo.gpg
    .git-credentials .pypirc .npmrc .yarnrc .yarnrc.yml .pgpass .my.cnf .mylogin.cnf
    .cargo/credentials .cargo/credentials.toml .gem/credentials .bundle/config .hex/hex.config
    .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .ivy2/.credentials
    .sbt/.credentials .nuget/NuGet .composer/auth.json .pub-cache/credentials.json .s3cfg
    .terraformrc .terraform.d/credentials.tfrc.json .vault-token .databrickscfg .snowflake .snowsql
    .kaggle .huggingface .cache/huggingface/token .cache/huggingface/stored_tokens .anthropic
    .claude .claude.json .codex .gemini .qwen .copilot .codebuddy .codebuddy.json .kimi-code .pi
    .omp .openclaw .codeium .config/opencode .local/share/opencode .config/kilo .local/share/kilo
    .openai .ngrok2 .config/ngrok .pulumi/credentials.json
    .minikube .vagrant.d .wakatime.cfg .smbcredentials .msmtprc .bash_history .zsh_history
    .python_history .node_repl_history .psql_history .lesshst .Xauthority .ICEauthority .fly .vercel
    .netlify .config/netlify .supabase .circleci
    """
)
"""In a home: where programs store keys, tokens and passwords. Hidden also when the home itself is the project."""

TOOLS = _names(
    """
    .pyenv .rbenv .rvm .nodenv .nvm .fnm .volta .asdf .goenv .gvm .jenv .jabba .sdkman .jdks .phpenv
    .plenv .perl5 perl5 .ghcup .elan .juliaup .opam .dotnet .rustup .cargo/bin .cargo/registry
    .cargo/git go/bin go/pkg sdk .luarocks .tfenv .deno/bin .bun/bin .bun/install .npm/_npx
    .npm-global .yarn/berry .node_modules .local/bin .local/lib .local/go .local/pipx
    .local/share/pipx .local/share/uv/python .local/share/uv/tools .local/share/pnpm
    .local/share/mise .local/share/rtx .local/share/fnm .local/share/virtualenvs .local/share/hatch
    .local/share/gem/ruby .local/share/swiftly .local/state/nix/profiles .nix-profile .virtualenvs
    miniconda3 anaconda3 miniforge3 mambaforge micromamba .conda/envs .conda/pkgs .gem/ruby
    .m2/repository .m2/wrapper .gradle/wrapper .gradle/caches .gradle/jdks .ivy2/cache .sbt/boot
    .nuget/packages .stack/programs .stack/snapshots .cabal/bin .cabal/packages .cabal/store .mix
    .hex/packages .julia/artifacts .julia/packages .julia/registries .pub-cache/bin
    .pub-cache/hosted .composer/vendor .config/composer/vendor Android/Sdk .platformio/packages
    .cache/pip .cache/pypoetry .cache/pre-commit .cache/ms-playwright .cache/puppeteer
    .cache/Cypress .cache/node .cache/electron .cache/coursier .cache/bazelisk .cache/torch
    .cache/huggingface/hub .cache/huggingface/datasets nltk_data .tool-versions .python-version
    .node-version .ruby-version .gitignore .gitignore_global .config/git/ignore
    .config/git/attributes .config/mise/config.toml
    """
)
"""In a home: what builds and tests start or read. Folders that also hold credentials are listed part by part."""

_TOOLS_WITHOUT_SECRETS = (".cargo/config.toml", ".cargo/config", ".cargo/env")
"""Visible when nothing in them looks like a secret."""

STRAY_CREDENTIALS = frozenset(
    _names(
        """
        .netrc _netrc .npmrc npmrc .yarnrc .yarnrc.yml .pypirc pip.conf .condarc condarc .env .envrc .token token
        .secret .credentials credentials credentials.toml credentials.json auth.json .git-credentials settings.xml
        settings-security.xml gradle.properties nuget.config NuGet.Config .boto .s3cfg id_rsa id_ed25519 .htpasswd
        """
    )
)
"""Files that a person may have put beside a toolchain: hidden at the top of each visible folder, and in its `etc`."""

_TOOL_VARIABLES = _names(
    """
    PYENV_ROOT RUSTUP_HOME NVM_DIR VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOROOT SDKMAN_DIR ASDF_DIR
    ASDF_DATA_DIR MISE_DATA_DIR VOLTA_HOME FNM_DIR RBENV_ROOT GEM_HOME DOTNET_ROOT ANDROID_HOME
    ANDROID_SDK_ROOT FLUTTER_ROOT POETRY_HOME
    """
)
"""Variables that name the folder of a toolchain."""

_CREDENTIAL_VARIABLES = _names(
    """
    AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE GOOGLE_APPLICATION_CREDENTIALS CLOUDSDK_CONFIG
    AZURE_CONFIG_DIR KUBECONFIG DOCKER_CONFIG GNUPGHOME GH_CONFIG_DIR NETRC PGPASSFILE
    NPM_CONFIG_USERCONFIG npm_config_userconfig PIP_CONFIG_FILE PASSWORD_STORE_DIR CODEX_HOME
    CLAUDE_CONFIG_DIR GIT_CONFIG_GLOBAL HF_HOME TF_CLI_CONFIG_FILE XAUTHORITY VAULT_CONFIG_PATH
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
    """
)
"""Variables that name a file or folder with credentials, which may be outside of the home."""

SYSTEM_CREDENTIALS = _names(
    """
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private
    /etc/krb5.keytab /etc/wireguard /etc/openvpn /etc/kubernetes /etc/docker
    /etc/NetworkManager/system-connections /etc/ppp /etc/rancher /var/lib/docker /etc/ssh
    /var/lib/kubelet /var/lib/containerd /var/backups /var/spool/cron /var/mail
    """
)
"""On the machine: what root could read, and what a wrong file mode would show to others."""

MAX_CHECKED = 64 * 1024
"""Bytes of a settings file that are checked for secrets; a longer one is not visible."""


def is_system(path: str) -> bool:
    """Return whether it contains programs of the machine: such a folder is never emptied."""
    return path in ("/", "/var", "/var/lib") or any(holds(folder, path) for folder in _SYSTEM)


def users_homes(environ: Mapping[str, str]) -> list[str]:
    """Return the homes of the current user: by `HOME`, and by the user database. Not resolved."""
    found = [environ.get("HOME", "")]
    if sys.platform != "win32":
        with suppress(KeyError):  # a container's user without an entry
            found.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return list(dict.fromkeys(path for path in found if os.path.isabs(path) and os.path.isdir(path)))


def all_homes(environ: Mapping[str, str]) -> list[str]:
    """Return the homes of the user and of others, as real paths."""
    found = [*users_homes(environ), "/home", "/root"]
    real = (os.path.realpath(path) for path in found if os.path.isdir(path))
    return sorted({path for path in real if not is_system(path)})


def tools(environ: Mapping[str, str]) -> Iterator[str]:
    """Return files and folders of toolchains: those known in a home, named by variables, and on PATH."""
    for home in users_homes(environ):
        yield from (os.path.join(home, name) for name in TOOLS)
        paths = (os.path.join(home, name) for name in _TOOLS_WITHOUT_SECRETS)
        yield from (path for path in paths if _has_no_secrets(path))
    yield from _prefixes(environ.get(name, "") for name in _TOOL_VARIABLES)
    for name, parts in (("CARGO_HOME", ("bin", "registry", "git")), ("GOPATH", ("bin", "pkg"))):
        if root := environ.get(name):
            yield from (os.path.join(root, part) for part in parts)
    for entry in environ.get("PATH", "").split(os.pathsep):
        yield entry
        parent = os.path.dirname(entry.rstrip("/"))
        if any(os.path.exists(os.path.join(parent, part)) for part in ("lib", "libexec", "pyvenv.cfg")):
            yield from _prefixes([parent])
    yield from _prefixes([sys.prefix, sys.base_prefix])


def credentials(environ: Mapping[str, str]) -> Iterator[str]:
    """Return where credentials are: in the user's homes, on the machine, and what variables name."""
    for home in users_homes(environ):
        yield from (os.path.join(home, name) for name in CREDENTIALS)
    yield from SYSTEM_CREDENTIALS
    named = [environ.get(name, "") for name in _CREDENTIAL_VARIABLES]
    if cargo := environ.get("CARGO_HOME"):
        named += [os.path.join(cargo, name) for name in ("credentials", "credentials.toml")]
    for value in named:
        for path in value.split(os.pathsep):
            if os.path.isabs(path) and not is_system(os.path.realpath(path)):
                yield path


def find_stray_credentials(shown: Iterable[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Return files with names of credentials in folders of toolchains: in the visible ones, and in those of the
    homes, which may be part of the project. Blocking.
    """
    known = (os.path.join(home, name) for home in users_homes(environ) for name in TOOLS)
    for folder in {*shown, *known}:
        for place in (folder, os.path.join(folder, "etc")):
            with suppress(OSError), os.scandir(place) as entries:
                yield from (entry.path for entry in entries if entry.name in STRAY_CREDENTIALS)


def _prefixes(paths: Iterable[str]) -> Iterator[str]:
    """Return those of these folders that hold one program: not `~/.local`, where credentials are beside programs."""
    for path in paths:
        if os.path.isabs(path) and os.path.basename(path.rstrip("/")) not in (".local", ".config", ".cache"):
            yield path


def _has_no_secrets(path: str) -> bool:
    try:
        with open(open_regular(path), encoding="utf-8") as file:
            text = file.read(MAX_CHECKED + 1)
    except (OSError, ValueError, FileRefused):
        return False
    return len(text) <= MAX_CHECKED and not looks_secret(text)
