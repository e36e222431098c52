"""Which environment variables a command in the sandbox gets: an allowlist, without values that look like secrets.

`process_tree` decides what an unconfined command gets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from .redact import redact_text

_NAMES = """
    PATH HOME USER LOGNAME SHELL PWD LANG LANGUAGE TERM TZ HOSTNAME COLUMNS LINES CI NO_COLOR PAGER
    GIT_PAGER GIT_TERMINAL_PROMPT SOURCE_DATE_EPOCH LS_COLORS COLORTERM FORCE_COLOR
    CC CXX CPP LD AR AS NM RANLIB CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKE MAKEFLAGS CMAKE_GENERATOR
    CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
    ACLOCAL_PATH MANPATH INFOPATH CUDA_HOME CUDA_PATH
    CARGO_HOME CARGO_INCREMENTAL RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS RUST_BACKTRACE RUST_LOG
    GOPATH GOROOT GOFLAGS GOOS GOARCH GOTOOLCHAIN GO111MODULE CGO_ENABLED
    JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME SDKMAN_DIR
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONUTF8
    PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONHASHSEED PYTHONWARNINGS PYENV_ROOT PYENV_VERSION POETRY_HOME
    NODE_PATH NODE_ENV NODE_OPTIONS NVM_DIR NVM_BIN NVM_INC VOLTA_HOME FNM_DIR PNPM_HOME BUN_INSTALL DENO_INSTALL
    RBENV_ROOT RBENV_VERSION GEM_HOME GEM_PATH RUBYLIB BUNDLE_GEMFILE PERL5LIB PERL_LOCAL_LIB_ROOT
    ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR DOTNET_ROOT DOTNET_CLI_TELEMETRY_OPTOUT ANDROID_HOME ANDROID_SDK_ROOT
    FLUTTER_ROOT MIX_HOME R_HOME R_LIBS R_LIBS_USER JULIA_DEPOT_PATH OPAMROOT OPAM_SWITCH_PREFIX
    CAML_LD_LIBRARY_PATH LUA_PATH LUA_CPATH NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE SSL_CERT_FILE SSL_CERT_DIR
    LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME LC_ADDRESS LC_IDENTIFICATION
    LC_MEASUREMENT LC_NAME LC_PAPER LC_TELEPHONE
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
"""
ALLOWED = frozenset(_NAMES.split())
"""What shells, compilers and package managers need. Not all of `LC_*`: ssh forwards any name with that prefix."""

_SECRET = re.compile(
    r"://[^/\s@]+@"  # a URL with a user name, which may be a token, or with a password
    r"|(?i:(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|credentials?|authorization)[\"']?\s*[=:])"
    r"|(?i:\b(?:bearer|basic)\s+[\w+/=.-]{8})"
    r"|-----BEGIN"
    r"|\beyJ[\w-]{8,}\.[\w-]+"  # a JSON web token
    r"|\b(?:sk|pk|rk)[-_][\w-]{12,}"
    r"|\b(?:gh[opsur]_|github_pat_|glpat-|npm_|pypi-|hf_|xox[a-z]-|dop_v1_|shpat_|SG\.)[\w.-]{10,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
)

_WORD = re.compile(r"(?<![/\w])[A-Za-z0-9_+]{20,}(?![\w/])")
"""A long word that is not part of a path: some package managers name folders by hashes."""


def select_environment(environ: Mapping[str, str], added: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that a command in the sandbox gets; `added` are names from the user's settings.

    An added variable is passed on whatever its value looks like, except a key of our own providers.
    """
    return {
        name: value
        for name, value in environ.items()
        if redact_text(value) == value and (name in added or (name in ALLOWED and not _may_be_secret(value)))
    }


def looks_secret(value: str) -> bool:
    """Return whether a value has the form of a token, a private key, or a URL or option with a password."""
    return bool(_SECRET.search(value))


def _may_be_secret(value: str) -> bool:
    return looks_secret(value) or any(map(_is_random, _WORD.findall(value)))


def _is_random(word: str) -> bool:
    """Return whether a word looks random: letters in both cases with digits, or many hexadecimal digits."""
    kinds = (str.isdigit, str.islower, str.isupper)
    mixed = all(any(kind(char) for char in word) for kind in kinds)
    return mixed or (len(word) >= 32 and re.fullmatch(r"[0-9a-fA-F]+", word) is not None)
