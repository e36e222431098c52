"""Which paths, commands, URLs and tools the pattern of a rule matches. Knows no modes and no order of rules.

Each kind has two matches: a narrow one for rules that allow, where a doubt means no, and a wide one for rules that
stop something, where a doubt means yes. Patterns are never compiled to regular expressions, so matching is never
exponential.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from ..system.lazy import lazy_module
from ..text.folding import fold_case
from .commands import ParsedCommand, SimpleCommand, is_too_long
from .programs import program_name
from .protected import normalized_path
from .rules import EVERYTHING

if TYPE_CHECKING:
    import idna
else:
    idna = lazy_module("idna")

PORTS = {"http": 80, "https": 443}


class HostAddress(msgspec.Struct, frozen=True):
    """An http URL with an unambiguous host. `port` is None when it is the default of the scheme."""

    scheme: str
    host: str
    port: int | None
    rest: str

    @property
    def place(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def path_matches(pattern: str, path: str) -> bool:
    path = normalized_path(path)
    # A pattern that allows is relative to the project: what climbs out of it is never meant.
    if path.split("/")[0] == "..":
        return False
    if pattern in EVERYTHING:
        return True
    if path.startswith("/") != pattern.startswith("/"):
        return False
    return _star_matches(path_parts(pattern), path.strip("/").split("/"), _name_matches, "**")


def path_may_match(pattern: str, path: str) -> bool:
    """Match also the contents of a folder by its name, in any case and Unicode form."""
    path = normalized_path(fold_case(path))
    pattern = fold_case(pattern)
    if "/" in pattern.strip("/") and path.startswith("/") != pattern.startswith("/"):
        return False
    parts = path_parts(pattern.rstrip("/") or pattern)
    return _star_matches([*parts, "**"], path.strip("/").split("/"), _name_matches, "**")


def words_match(pattern: str, argv: Sequence[str]) -> bool:
    """Match word by word. A star in the first word stays within a folder, and one in another matches no `..`."""
    if pattern in EVERYTHING:
        return True
    wanted, open_end = _pattern_words(pattern)
    if len(argv) < len(wanted) or (len(argv) > len(wanted) and not open_end):
        return False
    # `build` must not allow `./build`: the one is found by PATH, the other is a file of the project.
    if wanted[0].count("/") != argv[0].count("/"):
        return False
    return all(map(_word_matches, wanted, argv))


def command_may_match(pattern: str, line: str, parsed: ParsedCommand) -> bool:
    """Return whether a command of the line matches. In an unclear line the words may be anywhere, quoted or within
    another command. A line that is too long is not searched: it asks in any case.
    """
    if pattern in EVERYTHING:
        return True
    if is_too_long(line):
        return False
    wanted, open_end = _pattern_words(fold_case(pattern))
    if parsed.unclear is None:
        return any(_argv_may_match(wanted, simple, open_end=open_end) for simple in parsed.commands)
    return any(_in_order(wanted, words) for words in loose_words(fold_case(line)))


def names_program(word: str, argv: Sequence[str]) -> bool:
    """Return whether a folded word of a pattern names the program of a command, in any folder."""
    return _glob_matches(word, fold_case(argv[0])) or _glob_matches(word, fold_case(program_name(argv)))


def matches_word(pattern: str, word: str) -> bool:
    """Return whether a word matches one word of a pattern; both are folded."""
    return _glob_matches(pattern, word)


def lies_above(pattern: str, path: str) -> bool:
    """Return whether a path is a folder that contains all files of the pattern: `docs` of `docs/**` and `docs/*.md`."""
    names = normalized_path(fold_case(path)).strip("/").split("/")
    parts = path_parts(fold_case(pattern))
    if len(names) >= len(parts) or "**" in parts[: len(names)]:
        return False
    return path.startswith("/") == pattern.startswith("/") and all(map(_name_matches, parts, names))


def loose_words(line: str) -> list[list[str]]:
    """Return the words of a line that cannot be parsed, split into commands by guess."""
    line = re.sub(r"\$\{?ifs\}?", " ", line, flags=re.IGNORECASE)
    line = re.sub(r"\\\n|[\"'\\]", "", line)
    return [piece.split() for piece in re.split(r"[;&|\n(){}`]", re.sub(r"[,<>]", " ", line))]


def parse_address(url: str) -> HostAddress | None:
    """Parse a URL; None when programs could disagree about its host."""
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
    return HostAddress(parts.scheme, host, None if port == PORTS[parts.scheme] else port, rest)


def same_origin(one: str, other: str) -> bool:
    """Return whether two URLs have the same host and port; http may become https of the same host."""
    first, second = parse_address(one), parse_address(other)
    if first is None or second is None:
        return False
    if (first.scheme, second.scheme) == ("http", "https") and first.port is None:
        return first.place == second.place
    return (first.scheme, first.place) == (second.scheme, second.place)


def url_matches(pattern: str, url: str) -> bool:
    found = parse_address(url)
    if found is None or ".." in re.split(r"[/?&\\]", unquote(unquote(found.rest))):
        return False
    return pattern in EVERYTHING or _address_matches(pattern, found, found.place, (found.rest,))


def url_may_match(pattern: str, url: str) -> bool:
    """Match any port when the pattern has none, and any spelling of a path; an ambiguous URL matches when it contains
    the name of the host.
    """
    found = parse_address(url)
    if pattern in EVERYTHING:
        return True
    if found is None:
        return _pattern_parts(pattern)[1].strip("*") in fold_case(url)
    spellings = _spellings(found.rest)
    return any(_address_matches(pattern, found, place, spellings) for place in (found.place, found.host))


def tool_matches(pattern: str, name: str) -> bool:
    """Match `server/tool`, each part by itself; a name without a server is one part."""
    if pattern in EVERYTHING:
        return True
    wanted, given = pattern.split("/", 1), name.split("/", 1)
    return len(wanted) == len(given) and all(map(_glob_matches, wanted, given))


def _pattern_words(pattern: str) -> tuple[list[str], bool]:
    """Return the words of the pattern, and whether further ones may follow."""
    wanted = pattern.split()
    if wanted[-1] == "*" and len(wanted) > 1:
        return wanted[:-1], True
    return wanted, False


def _word_matches(pattern: str, word: str) -> bool:
    climbs = "*" in pattern and pattern != "*" and ".." in word.split("/")
    return not climbs and _glob_matches(pattern, word)


def _argv_may_match(wanted: list[str], simple: SimpleCommand, *, open_end: bool) -> bool:
    argv = [fold_case(word) for word in simple.argv]
    if len(argv) < len(wanted) or (len(argv) > len(wanted) and not open_end):
        return False
    return names_program(wanted[0], simple.argv) and all(map(_glob_matches, wanted[1:], argv[1:]))


def _in_order(wanted: list[str], words: list[str]) -> bool:
    rest = iter(words)
    return all(
        any(_glob_matches(want, word) or _glob_matches(want, posixpath.basename(word)) for word in rest)
        for want in wanted
    )


def _address_matches(pattern: str, found: HostAddress, place: str, rests: Sequence[str]) -> bool:
    scheme, host, rest = _pattern_parts(pattern)
    if scheme and scheme != found.scheme:
        return False
    if host != "*" and not (place.endswith(host[1:]) if host.startswith("*.") else place == host):
        return False
    return not rest or any(_glob_matches(rest, spelling) for spelling in rests)


def _spellings(rest: str) -> tuple[str, ...]:
    """Return a path as it is written, and as a server may read it: decoded, and without `..` and doubled slashes."""
    path, mark, query = rest.partition("?")
    plain = unquote(unquote(path))
    short = re.sub("^/+", "/", posixpath.normpath(plain)) + ("/" if plain.endswith("/") else "")
    return rest, plain + mark + query, short + mark + query


def _pattern_parts(pattern: str) -> tuple[str, str, str]:
    """Return scheme, host and path of a URL pattern; a host alone has only that."""
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return "", _host(pattern), ""
    host, slash, path = rest.partition("/")
    return scheme.casefold(), _host(host).removesuffix(f":{PORTS.get(scheme.casefold())}"), slash + path


def _host(text: str) -> str:
    """Return a host as URLs spell it: `Bücher.example` is `xn--bcher-kva.example`."""
    if text.isascii():
        return text.casefold()
    stars, name = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        return stars + idna.encode(name, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return text.casefold()


def path_parts(pattern: str) -> list[str]:
    """Return the names of the pattern. Without a slash before its end it may begin anywhere; `**` at the end matches
    what is beneath, not the folder itself.
    """
    bare = pattern.rstrip("/")
    names = [name for name in bare.split("/") if name not in ("", ".")]
    if "/" not in bare:
        names.insert(0, "**")
    if pattern.endswith("/"):
        names.append("**")
    return [*names[:-1], "*", "**"] if names[-1:] == ["**"] else names


def _name_matches(pattern: str, text: str) -> bool:
    return _star_matches(pattern, text, lambda one, other: one in ("?", other), "*")


def _glob_matches(pattern: str, text: str) -> bool:
    return _star_matches(pattern, text, str.__eq__, "*")


def _star_matches(
    pattern: Sequence[str], text: Sequence[str], same: Callable[[str, str], bool], star: str
) -> bool:
    """Match piece by piece, where `star` matches any number of pieces.

    After a mismatch only the last star takes one piece more: extending an earlier one cannot help, so this is not
    exponential.
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
