"""Parse the bytes of a file as an instruction rule, in the format that its path and suffix imply. Pure.

Every error is a `MalformedRule`, with a message for the author. The YAML library is imported for the first file that
needs it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ...model import JsonObject
from ...system.lazy import lazy_module
from ...text.suggest import did_you_mean
from ...text.surrogates import is_well_formed
from ...workspace.globs import BadPattern, expand_braces
from ...workspace.globs import parse_glob as glob
from ...workspace.text import NotText, decode_text
from . import front_matter
from .rule import Applies, MalformedRule

if TYPE_CHECKING:
    import yaml

    from ...text import expected
else:
    expected = lazy_module("sidecar.text.expected")
    yaml = lazy_module("yaml")

Format = Literal["plain", "cursor", "own"]
"""Plain Markdown, a rule of the editor Cursor, or one of ours."""

OWN_ENDINGS = (".md", ".json", ".yaml", ".yml")
CURSOR_ENDINGS = (".mdc", ".md")

MAX_PATTERNS = 64
"""Globs, or words, of one rule: all of them are matched at every prompt."""

MAX_WORD = 200
"""Characters of a word or a name; a sentence, at most."""

MAX_PRIORITY = 1_000_000

MAX_DEPTH = 16
"""Nested lists and maps: people write three, and a hostile file would overflow the stack."""


class ParsedRule(msgspec.Struct, frozen=True):
    """The content of a file. Its name is None when the name of the file is used."""

    text: str
    name: str | None = None
    applies: Applies = "always"
    globs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    priority: int = 0
    metadata: JsonObject = {}
    handler: str | None = None


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a rule as its author writes them."""

    name: str | None = None
    description: str | None = None
    applies: Applies | None = None
    globs: str | list[str] | None = None
    words: str | list[str] | None = None
    always: bool | None = msgspec.field(default=None, name="alwaysApply")
    instruction: str | None = None
    priority: int | None = None
    metadata: JsonObject | None = None
    handler: str | None = None


FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(_Fields))

MEANT = {
    **dict.fromkeys(("text", "content", "body", "rule", "prompt", "instructions"), "instruction"),
    **dict.fromkeys(("paths", "path", "files", "file", "patterns"), "globs"),
    **dict.fromkeys(("keywords", "keyword", "triggers", "trigger"), "words"),
    **dict.fromkeys(("always", "always_apply"), "alwaysApply"),
    **dict.fromkeys(("title", "id"), "name"),
    **dict.fromkeys(("command", "run", "script"), "handler"),
    **dict.fromkeys(("order", "weight"), "priority"),
}
"""Fields of other programs' rules, and what they are called here."""

_UNKNOWN_FIELD = re.compile(r"unknown field `([^`]*)`")


def parse_rule(file: str, data: bytes, format: Format) -> ParsedRule:
    """Parse a rule. `file` is the name of the file: its suffix decides the format of our own rules."""
    text = rule_file_text(data)
    if format == "plain":
        return ParsedRule(text)
    if format == "cursor":
        return _parse_cursor(file, text)
    ending = file[file.rfind(".") :].lower()
    if ending == ".json":
        return _parse_own(_to_json(_json(text)), "")
    if ending in (".yaml", ".yml"):
        return _parse_own(_to_json(_yaml(text)), "")
    values, body = front_matter.split_front_matter(text)
    return _parse_own(_to_json(values), _trim(body))


def rule_file_text(data: bytes) -> str:
    """Return the text with normalized line ends, without empty lines around it."""
    try:
        text = decode_text(data).text
    except NotText as error:
        raise MalformedRule("it is not a text file", "unreadable") from error
    return _trim(text.replace("\r\n", "\n").replace("\r", "\n"))


def stem(file: str) -> str:
    """Return the name of the file without its suffix."""
    return file[: file.rfind(".")] if "." in file[1:] else file


def _parse_own(values: Any, body: str) -> ParsedRule:
    if not isinstance(values, dict):
        raise MalformedRule("it must hold one rule: keys such as `instruction`, and their values")
    try:
        fields = msgspec.convert(values, _Fields)
    except msgspec.ValidationError as error:
        raise MalformedRule(_validation_message(error)) from error
    if body and fields.instruction is not None:
        raise MalformedRule("`instruction` and the text beneath the front matter say the same: keep one")
    text = _trim(fields.instruction or "") or body
    handler = (fields.handler or "").strip() or None
    if not text and not handler:
        raise MalformedRule("it has no instruction: write what the model is to do")
    if handler and (handler == "python:" or "\n" in handler):
        raise MalformedRule("`handler` must be one command line, or `python:` and an entry point's name")
    globs, words = _globs(fields.globs), _words(fields.words)
    metadata = dict(fields.metadata or {})
    if fields.description is not None:
        metadata.setdefault("description", fields.description)
    return ParsedRule(
        text,
        name=_name(fields.name),
        applies=_applies(fields, globs, words),
        globs=globs,
        words=words,
        priority=_priority(fields.priority),
        metadata=metadata,
        handler=handler,
    )


def _parse_cursor(file: str, text: str) -> ParsedRule:
    """Parse a Cursor rule. One that is neither for all prompts nor for globs is used when a prompt contains `@name`."""
    values, body = front_matter.split_front_matter(text)
    known = {name: values.pop(name, None) for name in ("globs", "alwaysApply")}
    try:
        fields = msgspec.convert(known, _Fields)
    except msgspec.ValidationError as error:
        raise MalformedRule(_validation_message(error)) from error
    globs = _globs(fields.globs)
    # Without front matter nothing restricts it.
    always = fields.always or not text.startswith(front_matter.FENCE)
    applies: Applies = "always" if always else "glob" if globs else "word"
    words = (f"@{stem(file)}",) if applies == "word" else ()
    return ParsedRule(_trim(body), applies=applies, globs=globs, words=words, metadata=_to_json(values))


def _applies(fields: _Fields, globs: tuple[str, ...], words: tuple[str, ...]) -> Applies:
    if fields.applies is None:
        if fields.always:
            return "always"
        if globs and words:
            raise MalformedRule("it has globs and words: say which by `applies: glob` or `applies: word`")
        return "glob" if globs else "word" if words else "always"
    if fields.applies == "glob" and not globs:
        raise MalformedRule("it applies by glob and has none: name them in `globs`")
    if fields.applies == "word" and not words:
        raise MalformedRule("it applies by word and has none: name them in `words`")
    return fields.applies


def _globs(given: str | list[str] | None) -> tuple[str, ...]:
    texts = (text.removeprefix("./") for text in _split_values("globs", given))
    globs = tuple(f"{text}**" if text.endswith("/") else text for text in texts)  # a folder: everything in it
    for text in globs:
        if text.startswith("!"):
            raise MalformedRule(f"`globs`: `{text}` excludes, and a pattern can only include")
        try:
            for one in expand_braces(text):
                glob(one)
        except BadPattern as error:
            raise MalformedRule(f"`globs`: `{text[:MAX_WORD]}`: {error}") from error
    return globs


def _words(given: str | list[str] | None) -> tuple[str, ...]:
    words = _split_values("words", given)
    for word in words:
        if len(word) > MAX_WORD or not any(char.isalnum() for char in word):
            raise MalformedRule(
                f"`words`: each needs a letter or a digit, and has {MAX_WORD} characters at most"
            )
    return words


def _split_values(key: str, given: str | list[str] | None) -> tuple[str, ...]:
    """Return the parts of a list, or of a comma-separated text, as in Cursor."""
    texts = (
        front_matter.split_list(given) if isinstance(given, str) else [text.strip() for text in given or ()]
    )
    if len(texts) > MAX_PATTERNS:
        raise MalformedRule(f"`{key}`: there are {len(texts)}, more than {MAX_PATTERNS}")
    return tuple(text for text in texts if text)


def _name(given: str | None) -> str | None:
    name = (given or "").strip()
    if len(name) > MAX_WORD or not name.isprintable():
        raise MalformedRule(f"`name` must be one line of at most {MAX_WORD} characters")
    return name or None


def _priority(given: int | None) -> int:
    if abs(given or 0) > MAX_PRIORITY:
        raise MalformedRule(f"`priority` must be from -{MAX_PRIORITY} to {MAX_PRIORITY}")
    return given or 0


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise MalformedRule(f"it is not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRule(_TOO_DEEP) from error


def _yaml(text: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        # The parser events are read without recursion, to check depth and aliases before anything is built from them.
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise MalformedRule(
                    f"{_position(event.start_mark)}aliases are not understood; quote the value"
                )
            if getattr(event, "tag", None):
                raise MalformedRule(f"{_position(event.start_mark)}tags are not understood; quote the value")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise MalformedRule(_TOO_DEEP)
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        at = _position(getattr(error, "problem_mark", None))
        raise MalformedRule(f"{at}it is not YAML: {getattr(error, 'problem', None) or error}") from error
    except (ValueError, ArithmeticError) as error:
        raise MalformedRule(f"a date or a number is none: {error}; quote the value") from error


def _position(mark: Any) -> str:
    return f"line {mark.line + 1}: " if mark else ""


_TOO_DEEP = f"its lists and maps are nested more than {MAX_DEPTH} levels deep"


def _to_json(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON can represent it; a date becomes its text."""
    if depth > MAX_DEPTH:
        raise MalformedRule(_TOO_DEEP)
    match value:
        case None | bool():
            return value
        case int() if abs(value) < 2**63:
            return value
        case str():
            if "\0" in value or not is_well_formed(value):
                raise MalformedRule("it has characters that are no text: NUL, or halves of a pair")
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [_to_json(one, depth + 1) for one in value]
        case dict():
            return {_key(key): _to_json(one, depth + 1) for key, one in value.items()}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise MalformedRule(f"a value is neither text, number, list nor map: {str(value)[:MAX_WORD]!r}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise MalformedRule(f"a key must be text: put {str(key)[:MAX_WORD]!r} into quotes")
    return str(_to_json(key))


def _validation_message(error: msgspec.ValidationError) -> str:
    """Return `priority`: expected `int`, got `str`; allowed: an integer."""
    if unknown := _UNKNOWN_FIELD.search(str(error)):
        return _unknown_field(unknown[1])
    wrong = expected.explain_mismatch(_Fields, str(error))
    words = wrong.words[0].lower() + wrong.words[1:]
    return f"`{wrong.field}`: {words}" if wrong.field else words


def _unknown_field(name: str) -> str:
    known = MEANT.get(name.lower())
    near = [known] if known else did_you_mean(name, FIELDS)
    remedy = f"did you mean `{near[0]}`?" if near else f"the fields are {', '.join(FIELDS)}"
    return f"there is no field `{name[:MAX_WORD]}`; {remedy}"


def _trim(text: str) -> str:
    return text.strip("\n").rstrip()
