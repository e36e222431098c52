"""`sidecar providers`: the list, the test, and a key that no command line shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import fake_keyring
from tests.support.unfriendly import RefusingServer, refusing_server

from .shell import Shell

KEY = "sk-example-0123456789"


@pytest.fixture
def provider() -> Iterator[RefusingServer]:
    with refusing_server() as server:
        yield server


@pytest.fixture
def kept(shell: Shell) -> Shell:
    """A shell with a keyring, empty for each command."""
    shell.env |= fake_keyring.environment()
    return shell


def test_the_providers_are_listed_with_the_places_of_their_keys(shell: Shell) -> None:
    shell.env["OPENAI_API_KEY"] = KEY
    head, *rows = shell.output("providers").splitlines()
    by_name = {row.split()[0]: row for row in rows}

    assert head.split() == ["provider", "type", "key", "address", "state"]
    assert by_name["openai"].split()[2:] == [
        "environment",
        "(OPENAI_API_KEY)",
        "https://api.openai.com/v1",
        "ready",
    ]
    assert by_name["anthropic"].endswith("no key: set ANTHROPIC_API_KEY or enter one")
    assert KEY not in "".join(rows)


def test_a_provider_that_does_not_answer_is_exit_code_1(shell: Shell, provider: RefusingServer) -> None:
    shell.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{provider.url}/v1"}
    done = shell.run("providers", "test", "openai")

    assert (done.returncode, done.stdout.startswith("openai: "), KEY in done.stdout + done.stderr) == (
        1,
        True,
        False,
    )
    assert KEY in provider.heard[0]


def test_an_unknown_provider_is_told_with_the_known_ones(shell: Shell) -> None:
    done = shell.run("providers", "test", "opnai")

    assert (done.returncode, done.stderr) == (
        1,
        "sidecar: `provider`: one of openai, openai-responses, anthropic, gemini, ollama, local\n",
    )


def test_a_key_is_kept_from_stdin(kept: Shell) -> None:
    assert kept.output("providers", "set-key", "openai", stdin=KEY + "\n") == (
        "The key of openai is in the keyring.\n"
    )


def test_a_key_that_another_goes_before_is_said_to_be_idle(kept: Shell) -> None:
    kept.env["OPENAI_API_KEY"] = KEY + "x"

    assert kept.output("providers", "set-key", "openai", stdin=KEY) == (
        "The key of openai is in the keyring.\n"
        "  It is not in use: the key of the environment goes before it.\n"
    )


def test_a_key_is_typed_without_being_shown(kept: Shell) -> None:
    with kept.terminal("providers", "set-key", "openai") as terminal:
        terminal.wait_for("(it is not shown): ")
        terminal.enter(KEY)
        terminal.wait_for("is in the keyring")

        assert (terminal.leave_code(), KEY in terminal.seen) == (0, False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("given", ["", "\n", "two words"])
def test_what_is_no_key_is_refused(kept: Shell, given: str) -> None:
    done = kept.run("providers", "set-key", "openai", stdin=given)

    assert (done.returncode != 0, "key" in done.stderr, "two words" in done.stderr) == (True, True, False)


def test_a_system_without_a_keyring_is_told(shell: Shell) -> None:
    shell.env["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    done = shell.run("providers", "set-key", "openai", stdin=KEY)

    assert (done.returncode, KEY in done.stderr) == (1, False)
    assert done.stderr.startswith("sidecar: The keyring cannot be written: NoKeyringError: ")


def test_settings_with_a_key_are_printed_without_it(shell: Shell) -> None:
    written = shell.output("config", "set", "providers.openai.api_key", KEY)
    printed = shell.output("config")

    assert written.startswith('providers.openai.api_key = "(set)"')
    assert '"(set)"' in printed
    assert KEY not in written + printed
