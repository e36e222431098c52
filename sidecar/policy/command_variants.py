"""Whether a command may be one that a `run` rule stops, although its words differ: `rm -fr a` and `rm -rf *`.

Options can be in another order, joined, separate, short or long; a path has many spellings; a wildcard may match any
name. So this match is deliberately wide and its result is only to ask: what matches word by word is stopped by the
rule itself (`matching.command_may_match`). Pure text.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from ..text.folding import fold_case
from . import matching
from .commands import SimpleCommand, parse_command
from .rules import Rule


def may_be_meant(rule: Rule, simple: SimpleCommand) -> bool:
    """Return whether the command runs the program of the rule with all that the rule names, in any order and
    spelling.
    """
    words = _words(rule)
    if not words or not matching.names_program(words[0], simple.argv):
        return False
    options = [word for word in words[1:] if _is_option(word)]
    others = [word for word in words[1:] if not _is_option(word)]
    given = [word for word in simple.argv[1:] if not _is_option(word)]
    return _has_options(options, simple.argv[1:]) and all(
        any(_is_same_word(want, word) for word in given) for want in others
    )


def _words(rule: Rule) -> Sequence[str]:
    """Return the words of the rule's single command; none when it is about code or several commands."""
    if rule.exact is None:
        return fold_case(rule.pattern).removesuffix(" *").split()
    commands = parse_command(rule.exact).commands
    return [fold_case(word) for word in commands[0].argv] if len(commands) == 1 else ()


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] in "-+"


def _has_options(wanted: Sequence[str], argv: Sequence[str]) -> bool:
    """Return whether the words contain each option, also by its other name: short for long and vice versa."""
    given = [fold_case(word) for word in argv if _is_option(word)]
    long = [word.partition("=")[0] for word in given if word.startswith("--")]
    letters = {letter for word in given if not word.startswith("--") for letter in word[1:]}
    short_wanted = {letter for word in wanted if not word.startswith("--") for letter in word[1:]} - {"*"}
    long_wanted = {word.partition("=")[0].rstrip("*") for word in wanted if word.startswith("--")}
    missing_long = {want for want in long_wanted if not any(_abbreviates(word, want) for word in long)}
    unexplained_long = [word for word in long if not any(_abbreviates(word, want) for want in long_wanted)]
    if short_wanted - letters and not unexplained_long:
        return False
    return not missing_long or bool(letters - short_wanted)


def _abbreviates(word: str, option: str) -> bool:
    return len(word) > 2 and (option.startswith(word) or word.startswith(option))


def _is_same_word(want: str, word: str) -> bool:
    if any(sign in word for sign in "*?["):
        return True  # the shell may expand it to the name
    folded = fold_case(word)
    spellings = (folded, posixpath.normpath(folded), posixpath.basename(folded.rstrip("/")))
    wanted = {want, posixpath.normpath(want)}
    return any(matching.matches_word(each, spelling) for each in wanted for spelling in spellings)
