"""A shell in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from .shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
