"""The variables that a command in the sandbox gets: those on the list, without values that look like secrets."""

from __future__ import annotations

import pytest

from sidecar.system import redact
from sidecar.system.environment import looks_secret, select_environment

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SESSION": "canary",
    "ANTHROPIC_AUTH": "canary",
    "CI_JOB_JWT": "canary",
    "COOKIE": "canary",
    "DATABASE_URL": "postgres://user:canary@db/x",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/canary",
    "DOCKER_AUTH_CONFIG": '{"auths":{}}canary',
    "GH_PAT": "canary",
    "GPG_AGENT_INFO": "/canary",
    "HEROKU_OAUTH": "canary",
    "KUBECONFIG": "/home/me/canary",
    "LDAP_BIND_PW": "canary",
    "MYSQL_PWD": "canary",
    "NETRC": "/canary",
    "PGPASSWORD": "canary",
    "RAILS_MASTER": "canary",
    "REDIS_URL": "redis://:canary@host",
    "SENTRY_DSN": "https://canary@sentry.io/1",
    "SLACK_WEBHOOK": "https://hooks.slack.com/canary",
    "SSH_AUTH_SOCK": "/canary",
    "STRIPE": "sk_live_canarycanarycanary",
    "TWILIO_SID": "canary",
    "VAULT_ADDR": "https://canary",
    "XDG_RUNTIME_DIR": "/run/canary",
    "my_pin": "canary",
}
"""Under names of which no list of suspicious words knows all."""

IN_ALLOWED = {
    "HTTPS_PROXY": "http://me:canary@proxy:3128",
    "http_proxy": "http://canarytoken@proxy:3128",
    "CFLAGS": '-O2 -DAPI_KEY="canary"',
    "NODE_OPTIONS": "--token=canary",
    "RUSTFLAGS": "--cfg password=canary",
    "MAKEFLAGS": "GITHUB=ghp_canarycanarycanary12",
    "PATH": "/usr/bin:/x/eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnki",
    "LC_ALL": "sk-ant-canarycanarycanary",
    "PYTHONPATH": "/x/glpat-canarycanary1234",
    "NODE_ENV": "Bearer canarycanary",
    "LC_MYAPP": "canary",
    "LC_X_AUTH": "de_DE.UTF-8",
    "GOFLAGS": "-ldflags=-X=main.k=Zk3vQ9xT7bLm2Wp8Rd5Y",
    "MAKEFLAGS ": "K=0123456789abcdef0123456789abcdef",
    "PYTHONWARNINGS": "b7Xq2LrT9vKz4NmW8cHd1",
}


@pytest.mark.parametrize("name", [*SECRETS, *IN_ALLOWED])
def test_no_secret_is_passed_on(name: str) -> None:
    value = {**SECRETS, **IN_ALLOWED}[name]
    assert select_environment({name: value, "LANG": "C"}) == {"LANG": "C"}


PLAIN = {
    "PATH": "/home/me/.cargo/bin:/usr/bin",
    "HOME": "/home/me",
    "LC_TIME": "de_DE.UTF-8",
    "VIRTUAL_ENV": "/home/me/p/.venv",
    "JAVA_HOME": "/usr/lib/jvm/java-21",
    "GOPATH": "/home/me/go",
    "CFLAGS": "-O2 -g -I/usr/include/task-tools",
    "http_proxy": "http://proxy:3128",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "CI": "true",
    "NIX_PATH": "nixpkgs=/nix/store/0c5b1h7sXq9A8w2kz3m4n5p6r7s8v9x0-source",
    "RUSTUP_TOOLCHAIN": "nightly-2025-06-01-x86_64-unknown-linux-gnu",
    "LS_COLORS": "di=01;34:ln=01;36:*.tar=01;31",
    "PYTHONPATH": "/home/me/.cache/ABCdef0123456789ABCdef0123/lib:/usr/lib/python3",
}


def test_what_builds_need_is_passed_on() -> None:
    assert select_environment(PLAIN) == PLAIN


def test_names_that_the_user_adds_are_passed_on_but_no_key_of_ours() -> None:
    redact.add_secrets(["provider-key-canary"])
    given = {"DATABASE_URL": "postgres://u:p@db/x", "MINE": "provider-key-canary", "OTHER": "x"}
    assert select_environment(given, ["DATABASE_URL", "MINE"]) == {"DATABASE_URL": "postgres://u:p@db/x"}


@pytest.mark.parametrize("value", ["a:b", "https://example.org/x@y", "1.2.3", "keyboard", "basic", "-Dkey"])
def test_plain_values_do_not_look_like_secrets(value: str) -> None:
    assert not looks_secret(value)
