"""A keyring that keeps nothing on the disk: PYTHON_KEYRING_BACKEND=tests.support.fake_keyring.Keyring.

What it holds at first comes from the environment, spelled backwards, so that a search for a key does not find it there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from keyring.backend import KeyringBackend

HELD = "FAKE_KEYRING"

TRACE = "FAKE_KEYRING_TRACE"
"""A file that is made as soon as the keyring is opened."""


def environment(**held: str) -> dict[str, str]:
    """What a process needs to find these keys in its keyring."""
    return {
        "PYTHON_KEYRING_BACKEND": f"{__name__}.Keyring",
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        HELD: json.dumps({name: key[::-1] for name, key in held.items()}),
    }


if TRACE in os.environ:
    Path(os.environ[TRACE]).touch()


class Keyring(KeyringBackend):
    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        held = json.loads(os.environ.get(HELD, "{}"))
        self._kept = {("sidecar", name): key[::-1] for name, key in held.items()}

    def get_password(self, service: str, username: str) -> str | None:
        sys.stdout.write("")  # a backend may print: file descriptor 1 is not the protocol's
        return self._kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._kept[service, username]
