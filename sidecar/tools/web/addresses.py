"""Which addresses may be requested: URL parsing and classes of IP addresses. Pure: resolves nothing, connects
nowhere.

A URL is parsed once, here, into one canonical form. Rules match that form, the resolver gets that host, and the
request names it, so that no two parsers can see different hosts in it. An ambiguous URL is refused.

An IP address is public, private (this machine and its networks: only when the settings name it) or never allowed:
link-local with the metadata services of clouds, multicast, reserved, and those that embed another address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urljoin

import msgspec

from ...settings.web_keys import place
from ...system.lazy import lazy_module

if TYPE_CHECKING:
    import idna
else:
    idna = lazy_module("idna")

IP = IPv4Address | IPv6Address
AddressClass = Literal["public", "private", "never"]

MAX_URL = 4096
"""Characters; servers refuse longer ones, and no page needs them."""

MAX_NAME = 253
"""Characters of a host's name, by DNS."""

PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"(https?)://([^/?#\\]*)([^#\\]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"\s*[a-zA-Z][a-zA-Z0-9+.-]*:")
_HOST_AND_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:@%]+)(?::([0-9]{0,5}))?")
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNQUOTED = "/?:@!$&'()*+,;=-._~%[]"
"""What stays as it is in a path: everything else is percent-encoded, as in a browser."""

# The registries of special addresses (RFC 6890 and its successors). Python's `is_private` has changed between
# versions, so the tables are here.
_PRIVATE = tuple(
    map(
        ip_network,
        (
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "::1/128",
            "fc00::/7",
        ),
    )
)
_NEVER = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network, and on Linux this machine
            "169.254.0.0/16",  # link-local, and the metadata services of most clouds
            "192.0.0.0/24",  # protocol assignments, and Oracle's metadata
            "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "198.18.0.0/15",  # benchmarks
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
            "100.100.100.200/32", "168.63.129.16/32",  # metadata services in ranges that are public otherwise
            "fd00:ec2::/32", "fd20:ce::/32",
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32", "3fff::/20",  # documentation
            "2002::/16",  # 6to4
        ),
    )
)  # fmt: skip
_GLOBAL6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")

BAD_PORTS = frozenset(
    (
        0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
        109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526,
        530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045,
        4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    )
)  # fmt: skip
"""Ports of other protocols, to which a request could be a command. The list is that of browsers (Fetch, "bad port").
"""


class AddressRefused(Exception):
    """An address that must not be requested; the message says why, and the remedy."""


class Target(msgspec.Struct, frozen=True):
    """A parsed and unambiguous address. `literal` is its host when that is an IP address; `rest` is path and query."""

    scheme: str
    host: str
    port: int
    rest: str
    literal: IP | None = None

    @property
    def place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}{self.rest}"

    def redirect_target(self, location: str) -> Target:
        """Return the target of a redirect. One with a scheme must be complete: `http:///x` could mean two hosts."""
        if _SCHEME.match(location):
            return parse_url(location)
        try:
            return parse_url(urljoin(self.url, location))
        except ValueError:
            raise AddressRefused(f"It redirects to {location[:200]!r}, which is no address.") from None


class AllowedHosts:
    """The private hosts that the settings allow. A name allows only requests by that name; an address or network
    allows only addresses in the URL. So the owner of a domain cannot point it into an allowed network.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._names: list[tuple[str, int | None]] = []
        self._networks: list[tuple[IPv4Network | IPv6Network, int | None]] = []
        for entry in entries:
            found = place(entry)
            if found is None:
                continue  # the settings have refused it already
            host, port = found
            if "/" in host:
                self._networks.append((ip_network(host), port))
            else:
                self._names.append((host, port))

    def names(self, target: Target) -> bool:
        if target.literal is not None:
            return any(
                target.literal in network and port in (None, target.port) for network, port in self._networks
            )
        return any(_is_named(target.host, name) and port in (None, target.port) for name, port in self._names)


def parse_url(url: str) -> Target:
    """Return the only reading of a URL; raise AddressRefused when there is none, or more than one."""
    url = url.strip(" \t\r\n")
    if len(url) > MAX_URL:
        raise AddressRefused(f"`url` has more than {MAX_URL} characters.")
    if any(char < " " or char == "\x7f" or "\ud800" <= char <= "\udfff" for char in url):
        raise AddressRefused("`url` has control characters or half a character in it.")
    # Parsed here and not by `urlsplit`: what two parsers read differently can be checked by one and
    # fetched by the other.
    match = _URL.fullmatch(url)
    if match is None:
        raise AddressRefused(
            "`url` must be a whole address that begins with http:// or https://, without backslashes."
        )
    scheme, authority, rest = match[1].lower(), match[2], match[3]
    # `http://good.example@bad.example/` looks like the first host to a person.
    if "@" in authority:
        raise AddressRefused("`url` has a user name or password in it. Addresses are fetched without.")
    found = _HOST_AND_PORT.fullmatch(authority)
    if found is None:
        raise AddressRefused(f"`url`: {authority[:80]!r} is not the name of a host.")
    host, literal = _host(found[1])
    port = int(found[2]) if found[2] else PORTS[scheme]
    if port > 65535 or port in BAD_PORTS:
        raise AddressRefused(f"`url`: port {port} is not one that pages are served on.")
    rest = rest if rest.startswith("/") else f"/{rest}"
    return Target(scheme, host, port, quote(rest, safe=_UNQUOTED), literal)


def address_class(address: IP) -> AddressClass:
    """Return the class of an IP address."""
    if isinstance(address, IPv6Address):
        # The gateway would connect to the IPv4 address inside.
        if address in _NAT64:
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
            return "public" if address_class(embedded) == "public" else "never"
        if address.scope_id is not None:
            return "never"
    if any(address in network for network in _NEVER):
        return "never"
    if any(address in network for network in _PRIVATE):
        return "private"
    # Only one eighth of IPv6 is in use; the rest is reserved, or embeds an IPv4 address (::ffff:0:0/96 and the like).
    return "public" if isinstance(address, IPv4Address) or address in _GLOBAL6 else "never"


def check(target: Target, addresses: Iterable[str], allowed: AllowedHosts) -> tuple[list[IP], bool]:
    """Return the addresses of a host, and whether they are private; raise AddressRefused when any is not allowed."""
    found = [ip_address(address) for address in addresses]
    if not found:
        raise AddressRefused(f"The name {target.host} has no address.")
    standings = {address: address_class(address) for address in found}
    # All of them, not only the one that is used: a name with one forbidden address is an attempt.
    for address, kind in standings.items():
        if kind == "never":
            raise AddressRefused(
                f"{_label(target, address)} is never fetched from: it is link-local, reserved, or embeds another"
                " address."
            )
        if kind == "private" and not allowed.names(target):
            raise AddressRefused(
                f"{_label(target, address)} belongs to this machine or its private network. Only the user can allow it,"
                f" by naming {target.place} in the setting fetch.allow_private."
            )
    # The one that answers would be chosen by the other side.
    if len(set(standings.values())) > 1:
        raise AddressRefused(f"The name {target.host} leads to public and private addresses at once.")
    return found, "private" in standings.values()


def _host(text: str) -> tuple[str, IP | None]:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            raise AddressRefused(f"`url`: {text[:80]} is not an IPv6 address.") from None
        return address.compressed, address
    name = _idna(text).lower().removesuffix(".")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        # Most programs read a host that ends in a number as an IPv4 address, in one of a dozen notations.
        try:
            return name, IPv4Address(name)
        except ValueError:
            raise AddressRefused(
                f"`url`: {text[:80]!r} is an unusual spelling of an IP address. Write it as four decimal numbers."
            ) from None
    if len(name) > MAX_NAME or any(len(label) > 63 for label in name.split(".")) or not _NAME.fullmatch(name):
        raise AddressRefused(f"`url`: {text[:80]!r} is not the name of a host.")
    return name, None


def _idna(name: str) -> str:
    """Return the IDNA form of a name: `bücher.example` is `xn--bcher-kva.example`."""
    if name.isascii():
        return name
    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise AddressRefused(f"`url`: {name[:80]!r} is not the name of a host.") from None


def _is_named(host: str, name: str) -> bool:
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _label(target: Target, address: IP) -> str:
    return str(address) if target.literal is not None else f"{target.host} ({address})"
