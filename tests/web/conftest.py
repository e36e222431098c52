from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.server import Site, serving


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site
