"""Which private places the settings may name."""

from __future__ import annotations

import pytest

from sidecar.settings import SettingsError, load
from sidecar.settings.web_keys import place

from .conftest import Places


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("localhost", ("localhost", None)),
        ("LocalHost.:8080", ("localhost", 8080)),
        ("*.lan", ("*.lan", None)),
        ("my_host.internal", ("my_host.internal", None)),
        ("192.168.1.7", ("192.168.1.7/32", None)),
        ("192.168.1.7:81", ("192.168.1.7/32", 81)),
        ("10.0.0.0/8", ("10.0.0.0/8", None)),
        ("::1", ("::1/128", None)),
        ("[::1]:3000", ("::1/128", 3000)),
        ("fd00::/8", ("fd00::/8", None)),
        *(
            (wrong, None)
            for wrong in ("http://x", "a b", "x:0", "x:99999", "x:", "10.0.0.1/8", "127.1", "0x7f.0.0.1")
        ),
        *(
            (wrong, None)
            for wrong in ("fe80::1%eth0", "*", "*.", "a..b", "a/b", "user@host", "bücher.example", ":80")
        ),
    ],
)
def test_an_entry_is_a_host_an_address_or_a_network(entry: str, found: tuple[str, int | None] | None) -> None:
    assert place(entry) == found


def test_a_wrong_entry_is_told_with_its_place_and_what_is_expected(places: Places) -> None:
    places.put(places.user, '[fetch]\nallow_private = ["localhost", "http://x"]\n')
    with pytest.raises(SettingsError) as error:
        load(environ={})
    assert "expected a list of hosts, addresses or networks" in str(error.value)
    assert 'found "http://x" in it' in str(error.value)
