"""Which paths, commands, addresses and tools a rule's pattern means. Knows no modes and no order of rules.

Each kind has two readings: `narrow` for rules that give leave, where a doubt means no, and `wide` for rules that stop
something, where a doubt means yes. No regular expression is made of a pattern, so that none can take for ever.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from .commands import Parsed, Simple, too_long
from .programs import program
from .protected import normal
from .rules import EVERYTHING

PORTS = {"http": 80, "https": 443}


class Address(msgspec.Struct, frozen=True):
    """An http address whose host is beyond doubt. `port` is None when it is the scheme's own."""

    scheme: str
    host: str
    port: int | None
    rest: str

    @property
    def place(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def path_narrow(pattern: str, path: str) -> bool:
    path = normal(path)
    if path.split("/")[0] == "..":
        return False
    if pattern in EVERYTHING:
        return True
    if path.startswith("/") != pattern.startswith("/"):
        return False
    return _stars(_path_parts(pattern), path.strip("/").split("/"), _name, "**")


def path_wide(pattern: str, path: str) -> bool:
    """Also a folder's contents by the folder's name, whatever the case and the Unicode form."""
    path = normal(_folded(path))
    pattern = _folded(pattern)
    if "/" in pattern.strip("/") and path.startswith("/") != pattern.startswith("/"):
        return False
    parts = _path_parts(pattern.rstrip("/") or pattern)
    return _stars([*parts, "**"], path.strip("/").split("/"), _name, "**")


def words_narrow(pattern: str, argv: Sequence[str]) -> bool:
    """Word by word. A star in the first word stays within a folder, and one in another takes no way up (`..`)."""
    if pattern in EVERYTHING:
        return True
    wanted, open_end = _wanted(pattern)
    if len(argv) < len(wanted) or (len(argv) > len(wanted) and not open_end):
        return False
    if wanted[0].count("/") != argv[0].count("/"):
        return False
    return all(map(_word, wanted, argv))


def run_wide(pattern: str, line: str, parsed: Parsed) -> bool:
    """True when a command of the line is meant. In a line that is unclear the words may stand anywhere, quoted or
    within another command. One that is too long is not looked through: it asks in any case."""
    if pattern in EVERYTHING:
        return True
    if too_long(line):
        return False
    wanted, open_end = _wanted(_folded(pattern))
    if parsed.unclear is None:
        return any(_argv_wide(wanted, simple, open_end=open_end) for simple in parsed.commands)
    return any(_in_order(wanted, words) for words in loose_words(_folded(line)))


def loose_words(line: str) -> list[list[str]]:
    """The words of a line that is not understood, command by command as far as can be guessed."""
    line = re.sub(r"\$\{?ifs\}?", " ", line, flags=re.IGNORECASE)
    line = re.sub(r"\\\n|[\"'\\]", "", line)
    return [piece.split() for piece in re.split(r"[;&|\n(){}`]", re.sub(r"[,<>]", " ", line))]


def address(url: str) -> Address | None:
    """None when programs could disagree about which host is meant."""
    if not url.isascii() or any(char <= " " or char in '\\"<>^`{|}\x7f' for char in url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    if (
        parts.scheme not in PORTS
        or "@" in parts.netloc
        or not re.fullmatch(r"[a-z0-9_.-]+|[0-9a-f:.]+", host)
    ):
        return None
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if ":" in host:
        host = f"[{host}]"
    return Address(parts.scheme, host, None if port == PORTS[parts.scheme] else port, rest)


def same_place(one: str, other: str) -> bool:
    """Whether two addresses are of the same host and port; http may become https of the same host."""
    first, second = address(one), address(other)
    if first is None or second is None:
        return False
    if (first.scheme, second.scheme) == ("http", "https") and first.port is None:
        return first.place == second.place
    return (first.scheme, first.place) == (second.scheme, second.place)


def fetch_narrow(pattern: str, url: str) -> bool:
    found = address(url)
    if found is None or ".." in re.split(r"[/?&\\]", unquote(unquote(found.rest))):
        return False
    return pattern in EVERYTHING or _fetches(pattern, found, found.place, (found.rest,))


def fetch_wide(pattern: str, url: str) -> bool:
    """Any port when the pattern has none, and any way to spell a path; when the address is in doubt, one that has the
    host's name in it."""
    found = address(url)
    if pattern in EVERYTHING:
        return True
    if found is None:
        return _pattern_parts(pattern)[1].strip("*") in _folded(url)
    spellings = _spellings(found.rest)
    return any(_fetches(pattern, found, place, spellings) for place in (found.place, found.host))


def tool(pattern: str, name: str) -> bool:
    """`server/tool`, each part by itself; what has no server is one part."""
    if pattern in EVERYTHING:
        return True
    wanted, given = pattern.split("/", 1), name.split("/", 1)
    return len(wanted) == len(given) and all(map(_glob, wanted, given))


def _wanted(pattern: str) -> tuple[list[str], bool]:
    """The pattern's words, and whether any further ones may follow."""
    wanted = pattern.split()
    if wanted[-1] == "*" and len(wanted) > 1:
        return wanted[:-1], True
    return wanted, False


def _word(pattern: str, word: str) -> bool:
    climbs = "*" in pattern and pattern != "*" and ".." in word.split("/")
    return not climbs and _glob(pattern, word)


def _argv_wide(wanted: list[str], simple: Simple, *, open_end: bool) -> bool:
    argv = [_folded(word) for word in simple.argv]
    if len(argv) < len(wanted) or (len(argv) > len(wanted) and not open_end):
        return False
    starts = _glob(wanted[0], argv[0]) or _glob(wanted[0], _folded(program(simple.argv)))
    return starts and all(map(_glob, wanted[1:], argv[1:]))


def _in_order(wanted: list[str], words: list[str]) -> bool:
    rest = iter(words)
    return all(
        any(_glob(want, word) or _glob(want, posixpath.basename(word)) for word in rest) for want in wanted
    )


def _fetches(pattern: str, found: Address, place: str, rests: Sequence[str]) -> bool:
    scheme, host, rest = _pattern_parts(pattern)
    if scheme and scheme != found.scheme:
        return False
    if host != "*" and not (place.endswith(host[1:]) if host.startswith("*.") else place == host):
        return False
    return not rest or any(_glob(rest, spelling) for spelling in rests)


def _spellings(rest: str) -> tuple[str, ...]:
    """A path as it is written, and as a server may read it: decoded, and without `..` and doubled slashes."""
    path, mark, query = rest.partition("?")
    plain = unquote(unquote(path))
    short = re.sub("^/+", "/", posixpath.normpath(plain)) + ("/" if plain.endswith("/") else "")
    return rest, plain + mark + query, short + mark + query


def _pattern_parts(pattern: str) -> tuple[str, str, str]:
    """Scheme, host and path of an address, of which a host alone has only that."""
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return "", _host(pattern), ""
    host, slash, path = rest.partition("/")
    return scheme.casefold(), _host(host).removesuffix(f":{PORTS.get(scheme.casefold())}"), slash + path


def _host(text: str) -> str:
    """A host as addresses spell it: `Bücher.example` is `xn--bcher-kva.example`."""
    if text.isascii():
        return text.casefold()
    import idna

    stars, name = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        return stars + idna.encode(name, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return text.casefold()


def _path_parts(pattern: str) -> list[str]:
    """The pattern's names. Without a slash before its end it may begin anywhere; `**` at the end means something
    beneath, not the folder itself."""
    bare = pattern.rstrip("/")
    names = [name for name in bare.split("/") if name not in ("", ".")]
    if "/" not in bare:
        names.insert(0, "**")
    if pattern.endswith("/"):
        names.append("**")
    return [*names[:-1], "*", "**"] if names[-1:] == ["**"] else names


def _name(pattern: str, text: str) -> bool:
    return _stars(pattern, text, lambda one, other: one in ("?", other), "*")


def _glob(pattern: str, text: str) -> bool:
    return _stars(pattern, text, str.__eq__, "*")


def _stars(pattern: Sequence[str], text: Sequence[str], same: Callable[[str, str], bool], star: str) -> bool:
    """Whether the text is what the pattern says, piece by piece, where `star` stands for any number of pieces.

    After a mismatch only the last star takes one piece more: giving more to an earlier one cannot help.
    """
    at = reached = 0
    back: int | None = None
    while at < len(text):
        if reached < len(pattern) and pattern[reached] == star:
            back, resume = reached, at
            reached += 1
        elif reached < len(pattern) and same(pattern[reached], text[at]):
            at, reached = at + 1, reached + 1
        elif back is not None:
            resume += 1
            at, reached = resume, back + 1
        else:
            return False
    return all(piece == star for piece in pattern[reached:])


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
