"""The settings for fetching web pages. They are part of the table in `keys`."""

from __future__ import annotations

from ..system.lazy import lazy_module
from .key import SettingKey, is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ipaddress
else:
    ipaddress = lazy_module("ipaddress")

_KIB = 1024
_MIB = 1024 * _KIB


def is_host_entry(text: str) -> bool:
    """Return whether it names a host, an address or a network: `localhost:8080`, `*.lan`, `192.168.1.7`,
    `10.0.0.0/8`.
    """
    return is_plain(text) and place(text) is not None


def place(text: str) -> tuple[str, int | None] | None:
    """Return the host, address or network of an entry in canonical form, and its port; None when it is none."""
    host, port = text, ""
    if text.count(":") == 1 or (text.startswith("[") and "]:" in text):
        host, _, port = text.rpartition(":")
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            return None
    number = int(port) if port else None
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if "%" in host:
        return None  # an address with an interface scope is never requested
    try:
        return str(ipaddress.ip_network(host)), number
    except ValueError:
        name = host.lower().removeprefix("*.").removesuffix(".")
    labels = name.split(".")
    if labels[-1].isdigit() or not all(map(_is_label, labels)):
        return None
    return ("*." if host.startswith("*.") else "") + name, number


def _is_label(label: str) -> bool:
    return 0 < len(label) < 64 and label.isascii() and label.replace("-", "").replace("_", "").isalnum()


FETCH = (
    SettingKey(
        "fetch.enabled",
        "flag",
        True,
        "Offer the tool `fetch_url`, which reads web pages.",
    ),
    SettingKey(
        "fetch.cache_enabled",
        "flag",
        True,
        "Cache fetched pages.",
    ),
    SettingKey(
        "fetch.cache_ttl",
        "seconds",
        3600.0,
        "How long a cached page is fresh; shorter if its server says so.",
        high=30 * 24 * 60 * 60,
    ),
    SettingKey(
        "fetch.cache_max_bytes",
        "integer",
        256 * _MIB,
        "Maximum size of the cache in bytes; the least recently used pages are removed first.",
        high=64 * _KIB * _MIB,
        project="never",
    ),
    SettingKey(
        "fetch.allow_private",
        "texts",
        (),
        "Hosts and addresses of this machine and its networks that may be fetched, in addition to public ones.",
        words='a list of hosts, addresses or networks, such as ["localhost:3000", "*.lan", "192.168.1.0/24"]',
        each=is_host_entry,
    ),
)
