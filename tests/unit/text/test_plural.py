"""The word for one of many."""

import pytest

from sidecar.text.plural import counted


@pytest.mark.parametrize(
    ("count", "many", "text"),
    [
        (1, "patches", "1 patch"),
        (2, "patches", "2 patches"),
        (0, "chats", "0 chats"),
        (1, "searches", "1 search"),
        (1, "entries", "1 entry"),
        (1, "messages", "1 message"),
        (1, "pages", "1 page"),
        (1200, "rules", "1,200 rules"),
    ],
)
def test_one_is_singular(count: int, many: str, text: str) -> None:
    assert counted(count, many) == text
