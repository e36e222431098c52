"""The beginnings of definitions in each language, as data: patterns for the first line of a head. Knows no
text."""

from __future__ import annotations

import re
from functools import cache

import msgspec

Pattern = re.Pattern[str]


class Language(msgspec.Struct, frozen=True, eq=False):
    """`heads` are tried in order. The name is the first non-empty group, or the last word in a group `last`.

    No pattern may take more than about quadratic time in the length of a line, whatever its text.
    """

    heads: tuple[Pattern, ...] = ()
    unsure: tuple[Pattern, ...] = ()
    """Heads that calls and conditions can look like, unless a body opens."""

    imports: Pattern | None = None
    opens: str = ""
    """What opens a body; empty where a head is always one line."""

    hashes: bool = False
    """Whether `#` starts a comment."""

    quotes: tuple[str, ...] = ()
    """Delimiters of multi-line strings, whose text may be unindented."""

    headings: Pattern | None = None
    """For a text in sections: a first group as long as the section is deep, and the name."""


def language_of(path: str) -> Language | None:
    """Return the language by the extension of a file's name."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1].lower()
    ending = name.rsplit(".", 1)[-1] if "." in name else name
    family = _FAMILIES.get(ending)
    return _language(family) if family else None


_ENDINGS = {
    "python": "py pyi pyx bzl",
    "script": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "c": "c h cc cpp cxx hh hpp hxx ino m mm cu proto",
    "typed": "java cs kt kts scala sc groovy gradle dart swift",
    "rust": "rs",
    "go": "go",
    "php": "php",
    "ends": "rb rake lua ex exs jl cr",
    "shell": "sh bash zsh ksh",
    "style": "css scss less",
    "keys": "yaml yml",
    "json": "json jsonc json5",
    "tables": "toml ini cfg",
    "markdown": "md markdown mdx",
}
_FAMILIES = {ending: family for family, endings in _ENDINGS.items() for ending in endings.split()}

_WORDS = (
    r"(?!(?:if|for|while|switch|catch|return|else|do|try|with|new|throw|delete|await|yield|case|when|using|lock|assert"
    r"|super|this|typeof|sizeof|foreach|until|unless|goto|in|not|fixed|guard|defer|go|select|match|loop"
    r"|synchronized)\b)"
)
"""What no definition starts with, however much the rest of its line looks like one."""

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|fileprivate|static|final|abstract|sealed|non-sealed"
    r"|override|async|open|data|case|partial|suspend|inline|readonly|const|constexpr|virtual|extern|unsafe|mutating"
    r"|implicit|lazy|inner|annotation|companion|value|expect|actual|tailrec|operator|infix|friend|explicit|required"
    r"|convenience|external|indirect|strictfp|ref|base|mixin|isolated|nonisolated|local)\s+)*"
)
_NAME = r"((?:[^\W\d]|\$)[\w$]*)"

_CLASSES = (
    rf"\s*+(?:template\s*<[^(]*>\s*)?(?:@\w+(?:\([^)]*\))?\s+)*{_MODIFIERS}(?:class|interface|struct|enum(?:\s+class|\s+struct)?|trait|union|namespace"
    rf"|module|object|record(?:\s+struct|\s+class)?|protocol|extension|actor|type|typealias|message|service|rpc"
    rf"|@interface|@implementation|@protocol|given)\s+(?:\w+\([^)]*\)\s+)?{_NAME}"
)
_FUNCTION = (
    rf"\s*+(?:@\w+(?:\([^)]*\))?\s+)*{_MODIFIERS}(?:function\b\s*\*?|(?:fun|func|def)\b)\s*(?:<[^>]*>\s*)?"
)
_FUNCTIONS = _FUNCTION + _NAME
_EXTENSIONS = _FUNCTION + r"(?:[\w<>?,* ]+\.)*" + _NAME
_METHODS = rf"\s*+{_WORDS}{_MODIFIERS}(?:get\s+|set\s+|\*\s*)?(#?[^\W\d][\w$]*)\s*(?:<[^>()]*>)?\s*\("
_TYPED = (
    rf"\s*+(?:template\s*<[^(]*>\s*)?{_WORDS}(?:@\w+(?:\([^)]*\))?\s+)*"
    r"(?P<last>[\w\s:.$~&*?<>,\[\]]++[=!+/%^|-]*+)\("
)
"""Types, a name and an opening parenthesis: many statements look like this too."""

_PATTERNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": ((rf"\s*+(?:async\s+)?(?:def|class|cdef\s+class|cpdef)\s+{_NAME}",), ()),
    "script": (
        (
            _CLASSES,
            _FUNCTIONS,
            rf"\s*+{_MODIFIERS}(?:const|let|var)\s+{_NAME}\s*(?::[^=]*)?=\s*(?:async\s*)?"
            r"(?:function\b|\(.*=>|\([^)]*$|[\w$]+\s*=>)",
            r"\s*+(?:describe|it|test|suite|context)(?:\.\w+)*\(\s*[\"'`]([^\"'`]+)[\"'`]",
            rf"\s*+(?:[\w$]+\.)*{_NAME}\s*[:=]\s*(?:async\s*)?"
            r"(?:function\b|\([^()]*\)\s*(?::\s*\S+\s*)?=>|[\w$]+\s*=>\s*\{)",
        ),
        (_METHODS,),
    ),
    "c": (
        (_CLASSES, rf"#\s*define\s+{_NAME}\(", rf"typedef\s+(?:struct|enum|union)\s*({_NAME[1:-1]})?"),
        (_TYPED,),
    ),
    "typed": ((_CLASSES, _EXTENSIONS, rf"\s*+{_MODIFIERS}(init)\b[?!]?\s*[(<]"), (_TYPED,)),
    "rust": (
        (
            rf"\s*+(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|async|const|unsafe|extern(?:\s+\"[^\"]*\")?)\s+)*"
            rf"(?:fn|struct|enum|trait|union|mod|type|macro_rules!)\s+{_NAME}",
            rf"\s*+(?:unsafe\s+)?impl\b.*\bfor\s+(?:&\s*(?:'\w+\s+)?(?:mut\s+)?)?(?:\w+::)*{_NAME}",
            rf"\s*+(?:unsafe\s+)?impl(?:<.*>)?\s+(?:\w+::)*{_NAME}",
        ),
        (),
    ),
    "go": (
        (
            rf"func\s+(?:\([^)]*\)\s*)?{_NAME}",
            rf"\s*+type\s+{_NAME}",
            r"(var|const|type)\s*\($",
        ),
        (),
    ),
    "php": ((_CLASSES, _FUNCTIONS), ()),
    "ends": (
        (
            r"\s*+(?:def|class|module|defp|defmodule|defmacro|defimpl|defprotocol|macro|struct)\s+(?:self\.)?(?:\w*::)*([\w.?!]+)",
            r"\s*+(?:local\s+)?function\s+([\w.:]+)",
            r"\s*+(?:local\s+)?([\w.]+)\s*=\s*function\b",
            r"\s*+(?:describe|context|it|test)\s+[\"']([^\"']+)[\"'].*\bdo\b",
        ),
        (),
    ),
    "shell": ((r"\s*+function\s+([\w:.-]+)", r"\s*+([\w:.-]+)\s*\(\)\s*(?:\{|\(|$)"), ()),
    "style": ((r"\s*+([^\s{};/*][^{};]*)\{\s*$",), ()),
    "keys": ((r"\s*+(?:-\s+)?[\"']?([\w./$@-][^:#\"']*)[\"']?\s*:\s*(?:[|>&!].*)?(?:\s#.*)?$",), ()),
    "json": ((r"\s*+\"((?:[^\"\\]|\\.){1,80})\"\s*:\s*[\[{]\s*$",), ()),
    "tables": ((), ()),
    "markdown": ((), ()),
}

_IMPORTS = {
    "python": r"(?:import|from)\s+[\w.]",
    "script": r"(?:import\b|export\s.*\bfrom\b|(?:const|let|var)\s.*=\s*require\()",
    "c": r"\s*+(?:#\s*(?:include|import)\b|import\s|using\s+namespace\b|package\s)",
    "typed": r"(?:import|package|using|namespace\s+[\w.]+;)\b",
    "rust": r"(?:pub\s+)?(?:use|extern\s+crate)\s",
    "go": r"(?:package|import)\b|\t(?:[\w.]+\s+)?\"[\w./-]+\"$",
    "php": r"(?:use|namespace|require|include)(?:_once)?\b",
    "ends": r"(?:require|require_relative|import|alias|use|using)\b",
    "shell": r"(?:source|\.)\s",
    "style": r"@(?:import|use)\b",
}
_HEADINGS = {"markdown": r"(#{1,6})\s+(.+)$", "tables": r"()\[+([^\]]+)\]"}
_OPENS = {
    "python": ":",
    "script": "{",
    "c": "{",
    "typed": "{",
    "rust": "{",
    "go": "{",
    "php": "{",
    "shell": "{",
    "style": "{",
    "ends": "end",
}
_HASHES = frozenset({"python", "ends", "shell", "php", "keys"})
_QUOTES = {
    "python": ('"""', "'''"),
    "script": ("`",),
    "go": ("`",),
    "typed": ('"""',),
    "ends": ('"""',),
}


@cache
def _language(family: str) -> Language:
    heads, unsure = _PATTERNS[family]
    likely = tuple(re.compile(pattern) for pattern in unsure)
    imports = _IMPORTS.get(family)
    return Language(
        heads=(*likely, *map(re.compile, heads)) if family == "c" else (*map(re.compile, heads), *likely),
        unsure=likely,
        imports=re.compile(imports) if imports else None,
        opens=_OPENS.get(family, ""),
        hashes=family in _HASHES,
        quotes=_QUOTES.get(family, ()),
        headings=re.compile(_HEADINGS[family]) if family in _HEADINGS else None,
    )
