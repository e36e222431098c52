"""A file's bytes as an instruction rule, in the format that its place and its ending say. Pure.

Everything that is wrong with a file is `Malformed`, in words for whoever wrote it. YAML has a library of its
own, which is imported for the first file that needs it.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from ...workspace.globs import BadPattern, alternatives
from ...workspace.globs import parsed as glob
from ...workspace.text import NotText, decoded
from . import front_matter
from .rule import Applies, Malformed

Format = Literal["plain", "cursor", "own"]
"""Markdown and nothing else, a rule of the editor Cursor, or one of ours."""

OWN_ENDINGS = (".md", ".json", ".yaml", ".yml")
CURSOR_ENDINGS = (".mdc", ".md")

MAX_PATTERNS = 64
"""Globs, or words, of one rule: all of them are tried at every prompt."""

MAX_WORD = 200
"""Characters of a word or a name; a sentence, at most."""

MAX_PRIORITY = 1_000_000

MAX_DEPTH = 16
"""Of lists and maps in one another: people write three, and a hostile file would use up the stack."""


class Parsed(msgspec.Struct, frozen=True):
    """What a file says. Its name is None when it leaves that to the file's."""

    text: str
    name: str | None = None
    applies: Applies = "always"
    globs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    priority: int = 0
    metadata: dict[str, Any] = {}
    handler: str | None = None


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    """A rule as its author spells it."""

    name: str | None = None
    description: str | None = None
    applies: Applies | None = None
    globs: str | list[str] | None = None
    words: str | list[str] | None = None
    always: bool | None = msgspec.field(default=None, name="alwaysApply")
    instruction: str | None = None
    priority: int | None = None
    metadata: dict[str, Any] | None = None
    handler: str | None = None


def parsed(file: str, data: bytes, format: Format) -> Parsed:
    """`file` is the file's own name: its ending tells the format of one of our rules."""
    text = text_of(data)
    if format == "plain":
        return Parsed(text)
    if format == "cursor":
        return _cursor(file, text)
    ending = file[file.rfind(".") :].lower()
    if ending == ".json":
        return _own(_checked(_json(text)), "")
    if ending in (".yaml", ".yml"):
        return _own(_checked(_yaml(text)), "")
    values, body = front_matter.parted(text)
    return _own(_checked(values), _trimmed(body))


def text_of(data: bytes) -> str:
    """The text with `\\n` for every line end, without empty lines around it."""
    try:
        text = decoded(data).text
    except NotText as error:
        raise Malformed("it is not a text file") from error
    return _trimmed(text.replace("\r\n", "\n").replace("\r", "\n"))


def stem(file: str) -> str:
    """The file's name without its ending."""
    return file[: file.rfind(".")] if "." in file[1:] else file


def _own(values: Any, body: str) -> Parsed:
    if not isinstance(values, dict):
        raise Malformed("it must hold one rule: keys such as `instruction`, and their values")
    try:
        fields = msgspec.convert(values, _Fields)
    except msgspec.ValidationError as error:
        raise Malformed(_in_words(error)) from error
    if body and fields.instruction is not None:
        raise Malformed("`instruction` and the text beneath the front matter say the same: keep one")
    text = _trimmed(fields.instruction or "") or body
    handler = (fields.handler or "").strip() or None
    if not text and not handler:
        raise Malformed("it has no instruction: write what the model is to do")
    if handler and (handler == "python:" or "\n" in handler):
        raise Malformed("`handler` must be one command line, or `python:` and an entry point's name")
    globs, words = _globs(fields.globs), _words(fields.words)
    metadata = dict(fields.metadata or {})
    if fields.description is not None:
        metadata.setdefault("description", fields.description)
    return Parsed(
        text,
        name=_name(fields.name),
        applies=_applies(fields, globs, words),
        globs=globs,
        words=words,
        priority=_priority(fields.priority),
        metadata=metadata,
        handler=handler,
    )


def _cursor(file: str, text: str) -> Parsed:
    """A rule that is neither for all prompts nor for globs is used there when it is called: `@name` in a prompt."""
    values, body = front_matter.parted(text)
    known = {name: values.pop(name, None) for name in ("globs", "alwaysApply")}
    try:
        fields = msgspec.convert(known, _Fields)
    except msgspec.ValidationError as error:
        raise Malformed(_in_words(error)) from error
    globs = _globs(fields.globs)
    # Without front matter nothing narrows it.
    always = fields.always or not text.startswith(front_matter.FENCE)
    applies: Applies = "always" if always else "glob" if globs else "word"
    words = (f"@{stem(file)}",) if applies == "word" else ()
    return Parsed(_trimmed(body), applies=applies, globs=globs, words=words, metadata=_checked(values))


def _applies(fields: _Fields, globs: tuple[str, ...], words: tuple[str, ...]) -> Applies:
    if fields.applies is None:
        if fields.always:
            return "always"
        if globs and words:
            raise Malformed("it has globs and words: say which by `applies: glob` or `applies: word`")
        return "glob" if globs else "word" if words else "always"
    if fields.applies == "glob" and not globs:
        raise Malformed("it applies by glob and has none: name them in `globs`")
    if fields.applies == "word" and not words:
        raise Malformed("it applies by word and has none: name them in `words`")
    return fields.applies


def _globs(given: str | list[str] | None) -> tuple[str, ...]:
    texts = (text.removeprefix("./") for text in _several("globs", given))
    globs = tuple(
        f"{text}**" if text.endswith("/") else text for text in texts
    )  # a folder: all that is in it
    for text in globs:
        if text.startswith("!"):
            raise Malformed(f"`globs`: `{text}` excludes, and a pattern can only include")
        try:
            for one in alternatives(text):
                glob(one)
        except BadPattern as error:
            raise Malformed(f"`globs`: `{text[:MAX_WORD]}`: {error}") from error
    return globs


def _words(given: str | list[str] | None) -> tuple[str, ...]:
    words = _several("words", given)
    for word in words:
        if len(word) > MAX_WORD or not any(char.isalnum() for char in word):
            raise Malformed(f"`words`: each needs a letter or a digit, and has {MAX_WORD} characters at most")
    return words


def _several(key: str, given: str | list[str] | None) -> tuple[str, ...]:
    """A list, or text with commas, as Cursor writes it."""
    texts = front_matter.listed(given) if isinstance(given, str) else [text.strip() for text in given or ()]
    if len(texts) > MAX_PATTERNS:
        raise Malformed(f"`{key}`: there are {len(texts)}, more than {MAX_PATTERNS}")
    return tuple(text for text in texts if text)


def _name(given: str | None) -> str | None:
    name = (given or "").strip()
    if len(name) > MAX_WORD or not name.isprintable():
        raise Malformed(f"`name` must be one line of at most {MAX_WORD} characters")
    return name or None


def _priority(given: int | None) -> int:
    if abs(given or 0) > MAX_PRIORITY:
        raise Malformed(f"`priority` must be from -{MAX_PRIORITY} to {MAX_PRIORITY}")
    return given or 0


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Malformed(f"it is not JSON: {error}") from error
    except RecursionError as error:
        raise Malformed(_TOO_DEEP) from error


def _yaml(text: str) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        # The events come without recursion, so that depth and aliases are known before anything is built of them.
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise Malformed(f"{_at(event.start_mark)}aliases are not understood; quote the value")
            if getattr(event, "tag", None):
                raise Malformed(f"{_at(event.start_mark)}tags are not understood; quote the value")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise Malformed(_TOO_DEEP)
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        at = _at(getattr(error, "problem_mark", None))
        raise Malformed(f"{at}it is not YAML: {getattr(error, 'problem', None) or error}") from error
    except (ValueError, ArithmeticError) as error:
        raise Malformed(f"a date or a number is none: {error}; quote the value") from error


def _at(mark: Any) -> str:
    return f"line {mark.line + 1}: " if mark else ""


_TOO_DEEP = f"its lists and maps stand more than {MAX_DEPTH} deep in one another"


def _checked(value: Any, depth: int = 0) -> Any:
    """The value as JSON can hold it; a date becomes its text."""
    if depth > MAX_DEPTH:
        raise Malformed(_TOO_DEEP)
    match value:
        case None | bool():
            return value
        case int() if abs(value) < 2**63:
            return value
        case str():
            if "\0" in value or not _is_well_formed(value):
                raise Malformed("it has characters that are no text: NUL, or halves of a pair")
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [_checked(one, depth + 1) for one in value]
        case dict():
            return {_key(key): _checked(one, depth + 1) for key, one in value.items()}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise Malformed(f"a value is neither text, number, list nor map: {str(value)[:MAX_WORD]!r}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise Malformed(f"a key must be text: put {str(key)[:MAX_WORD]!r} into quotes")
    return str(_checked(key))


def _is_well_formed(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _in_words(error: msgspec.ValidationError) -> str:
    """`priority`: expected `int`, got `str`. The library puts the place last, as `$.priority`."""
    words, _, place = str(error).partition(" - at `$.")
    return f"`{place.rstrip('`')}`: {words[0].lower()}{words[1:]}" if place else words[0].lower() + words[1:]


def _trimmed(text: str) -> str:
    return text.strip("\n").rstrip()
