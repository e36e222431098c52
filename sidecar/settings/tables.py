"""Tables with names that the user chooses, such as `[providers.NAME]`: their keys, valid values, what is never shown.

The list of such tables is in `known`; like the whole layer this imports nothing heavy until a file is read.
"""

from __future__ import annotations

from ..system.lazy import lazy_module
from .errors import SettingsError
from .key import SettingKey, suggestion_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any
    from urllib import parse as urls

    from .key import Kind, Reach, Value
else:
    urls = lazy_module("urllib.parse")

MASK = "(set)"
"""What is shown in place of a secret. It is refused as a value, so that nobody writes back what was shown."""

MAX_KEY_LENGTH = 8192
"""Longer than any token in use; a longer value is a file that was pasted by mistake."""

MAX_URL_LENGTH = 2048

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
DIGITS = frozenset("0123456789")
_NAME = LETTERS | DIGITS | frozenset("_-")
_HEADER = LETTERS | DIGITS | frozenset("!#$%&'*+-.^_`|~")
_RESERVED_HEADERS = ("host", "content-length", "transfer-encoding", "connection")
"""Headers that determine the end and the host of a request: another value would allow request smuggling."""


class Field(SettingKey):
    """A key that every table of a kind has.

    A value with `fits` is not repeated in an error, since it may be a secret; `mistake` returns the error within it.
    `masked` returns what may be shown of a value.
    """

    __slots__ = ("_fits", "masked", "mistake")

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Value,
        doc: str,
        *,
        words: str = "",
        fits: Callable[[Any], bool] | None = None,
        mistake: Callable[[str, object], SettingsError | None] | None = None,
        masked: Callable[[Any], Any] | None = None,
        choices: tuple[str, ...] = (),
        low: int = 0,
        high: int = 0,
        shown: str | None = None,
    ) -> None:
        super().__init__(
            name, kind, default, doc, choices=choices, low=low, high=high, shown=shown, words=words
        )
        self._fits = fits
        self.mistake = mistake
        self.masked = masked

    @property
    def quiet(self) -> bool:
        return self._fits is not None

    def narrow(self, value: object) -> Value:
        if self._fits is None:
            return super().narrow(value)
        return value if self._fits(value) else None  # type: ignore[return-value]


class NamedTables:
    """All tables `[TABLE.NAME]`; `project` says whether the file of a project may have one, as for a key.

    `whole` returns what is missing or superfluous in a table, and names in `fixed` have nothing to set. A later
    layer's table `replaces` an earlier one of the same name as a whole, or else adds to it key by key. `own` are keys
    of `[TABLE]` itself, beside the named tables. `member` of the settings holds the tables.
    """

    def __init__(
        self,
        table: str,
        noun: str,
        fields: tuple[Field, ...],
        whole: Callable[[str, Mapping[str, object]], SettingsError | None],
        *,
        project: Reach,
        fixed: tuple[str, ...] = (),
        replaces: bool = False,
        own: tuple[str, ...] = (),
        member: str | None = None,
    ) -> None:
        self.table = table
        self.member = member or table
        self._noun = noun
        self.fields = {field.name: field for field in fields}
        self.replaces = replaces
        for field in fields:
            field.project = project
        self._whole = whole
        self._fixed = fixed
        self._own = own

    def is_name(self, name: str) -> bool:
        return 0 < len(name) <= 64 and _NAME.issuperset(name) and name not in (*self._fixed, *self._own)

    def find(self, rest: str) -> Field | None:
        """Return the key with this dotted name, which does not include the table's."""
        name, _, field = rest.partition(".")
        return self.fields.get(field) if self.is_name(name) else None

    def flat(self, tables: object) -> dict[str, Any]:
        """Return the tables as values by dotted key. Raises for what is no table, and for an unknown name."""
        found: dict[str, Any] = {}
        if not isinstance(tables, dict):
            raise SettingsError(self.table, f"expected the table [{self.table}], found a value")
        for name, table in tables.items():
            dotted = f"{self.table}.{name}"
            if name in self._own:
                found[dotted] = table
                continue
            if not self.is_name(name):
                raise self._misnamed_error(name)
            if not isinstance(table, dict):
                if self._own:
                    raise self._unknown_own_error(name)
                raise SettingsError(dotted, f"expected the table [{dotted}], found a value")
            found.update({f"{dotted}.{field}": value for field, value in table.items()})
        return found

    def check_whole(self, tables: Mapping[str, Mapping[str, object]]) -> None:
        """Raise for the first table whose keys contradict each other."""
        for name, table in tables.items():
            error = None if name in self._own else self._whole(name, table)
            if error is not None:
                raise error

    def unknown(self, rest: str) -> SettingsError:
        """Return the error for an unknown key in such a table."""
        name, _, field = rest.partition(".")
        if not self.is_name(name):
            return self._misnamed_error(name)
        hint = suggestion_for(field, list(self.fields)) if field else None
        keys = ", ".join(f"`{key}`" for key in self.fields)
        names = (self.table, name, field) if field else None
        return SettingsError(
            f"{self.table}.{rest}",
            "there is no such setting",
            hint=hint or f"[{self.table}.{name}] has {keys}",
            names=names,
        )

    def by_name(self, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the values of the tables by name and key, from all values by dotted key."""
        found: dict[str, dict[str, Any]] = {}
        for dotted, value in values.items():
            table, _, rest = dotted.partition(".")
            name, _, field = rest.partition(".")
            if table == self.table and name not in self._own:
                found.setdefault(name, {})[field] = value
        return found

    def _unknown_own_error(self, name: str) -> SettingsError:
        keys = ", ".join(f"`{key}`" for key in self._own)
        hint = (
            suggestion_for(name, list(self._own))
            or f"[{self.table}] has {keys}, and a table for each {self._noun}"
        )
        return SettingsError(
            f"{self.table}.{name}", "there is no such setting", hint=hint, names=(self.table, name)
        )

    def _misnamed_error(self, name: str) -> SettingsError:
        if name in self._fixed:
            return SettingsError(f"{self.table}.{name}", f"this {self._noun} has nothing to set")
        return SettingsError(
            f"{self.table}.{name}",
            f"a {self._noun}'s name has 1 to 64 letters, digits, `_` and `-`",
            names=(self.table, name),
        )


def is_address(value: object) -> bool:
    """Return whether it is an http(s) URL without user and password."""
    if not isinstance(value, str) or len(value) > MAX_URL_LENGTH:
        return False
    if not all("!" <= char <= "~" for char in value) or "\\" in value:
        return False
    try:
        parts = urls.urlsplit(value)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and "@" not in parts.netloc
        )
    except ValueError:
        return False


def are_headers(value: object) -> bool:
    return isinstance(value, dict) and all(_is_header(name, text) for name, text in value.items())


def mask_each(value: dict[str, str]) -> dict[str, str]:
    return dict.fromkeys(value, MASK)


def _is_header(name: str, text: object) -> bool:
    return (
        name != ""
        and _HEADER.issuperset(name)
        and name.lower() not in _RESERVED_HEADERS
        and isinstance(text, str)
        and text == text.strip()
        and len(text) <= MAX_KEY_LENGTH
        and text != MASK
        and all(" " <= char <= "~" for char in text)
    )


def headers_field() -> Field:
    """Return the field of a provider or of an MCP server; each needs its own, as a table sets its `project`."""
    return Field(
        "headers",
        "text",
        None,
        "Headers to send with every request. Their values are never shown.",
        words="a table of header names and their text",
        fits=are_headers,
        masked=mask_each,
    )
