"""Whether a command does more than its name says: runs other code, or writes files that no rule has seen.

The one question asked of `tables`, with the programs that need a closer look than a list of options.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence

from .tables import ANY_PROGRAM, GIT, GIT_READS, OPTIONS, READERS, SUBCOMMANDS, WHOLE, names


def risk(argv: Sequence[str]) -> str | None:
    """Why a rule with a wildcard may not speak for this command, or None."""
    name = program(argv)
    plain = re.sub(r"-?[0-9.]+$", "", name)
    words = argv[1:]
    for known in (name, plain):
        if known in WHOLE:
            return f"{known}: {WHOLE[known]}"
        if known in _SPECIAL:
            return _SPECIAL[known](known, words)
        if known in SUBCOMMANDS and (not words or words[0] not in SUBCOMMANDS[known].split()):
            return f"{known}: this part of it may run or change more than it says"
        if known in OPTIONS:
            return _risky_option(known, OPTIONS[known], words)
    return _risky_option(name, ANY_PROGRAM, words)


def program(argv: Sequence[str]) -> str:
    """The program's name without its folder and a Windows suffix."""
    name = posixpath.basename(argv[0].replace("\\", "/")).casefold()
    return re.sub(r"\.(exe|cmd|bat|com)$", "", name)


def only_reads(argv: Sequence[str]) -> bool:
    """True for a program that does no more than look at the files it names."""
    if risk(argv):
        return False
    name = program(argv)
    return name in READERS or (name == "git" and any(word in GIT_READS for word in argv[1:3]))


def _risky_option(name: str, table: str, words: Iterable[str]) -> str | None:
    """The first word that the table names. Words after `--` count as well: some programs hand them on."""
    listed = [*table.split(), *(ANY_PROGRAM.split() if table is not ANY_PROGRAM else ())]
    for word in words:
        if len(word) > 1 and any(_names(word, option) for option in listed):
            return f"{name}: {word[:40]} may run another program or write a file"
    return None


def _names(word: str, option: str) -> bool:
    if option in ("+", "@"):
        return word.startswith(option)
    given = word.partition("=")[0]
    if option.endswith("!"):
        return given == option[:-1]
    if option.startswith("--"):
        return given.startswith("--") and len(given) > 2 and option.casefold().startswith(given.casefold())
    if option.endswith("*"):
        return word.startswith(option[:-1])
    if len(option) > 2:
        return given in (option, f"-{option}")
    return word[0] == "-" and word[1] != "-" and option[1] in word


def _git(name: str, words: Sequence[str]) -> str | None:
    harmless = ("--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs")
    rest = list(words)
    while rest and rest[0] in harmless:
        del rest[0]
    if rest == ["--version"]:
        return None
    if not rest or rest[0].startswith("-"):
        return "git: an option before its command may run another program"
    part = rest[0]
    if part == "config" and rest[1:2] in (["--get"], ["--list"], ["-l"], ["get"], ["list"]):
        return None if not any(word.startswith("-") for word in rest[2:]) else "git config: it may be changed"
    if part not in GIT:
        return f"git {part[:40]}: it may be an alias, or run or change more than it says"
    if part in ("fetch", "pull", "push", "remote") and _has_address(rest[1:]):
        return f"git {part}: it names an address of its own"
    return _risky_option(f"git {part}", GIT[part], rest[1:])


def _has_address(words: Sequence[str]) -> bool:
    """True when git is told where to go by more than a remote's name; such an address may even name a program."""
    where = next((word for word in words if not word.startswith("-")), "")
    spelled = re.compile(r".*(://|::)|[/.~]|[^/:]+@|[^/:]+\.[^/:]+:", re.DOTALL)
    return ":" in where or any(map(spelled.match, words))


_SED_COMMAND = r"(([0-9]+|\$)(,\+?([0-9]+|\$))?[pdq=]|s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*|/[^/\\\n]*/[pd])"
_SED_SCRIPT = rf"{_SED_COMMAND}(; *{_SED_COMMAND})*;?"


def _sed(name: str, words: Sequence[str]) -> str | None:
    """Scripts can run programs and write files; only printing, deleting and plain replacing are recognised."""
    scripts = [word for word in words if not word.startswith("-")]
    harmless = ("-n", "-E", "-r", "-u", "-nE", "-En", "--quiet", "--silent", "--regexp-extended")
    if any(word.startswith("-") and word not in harmless for word in words):
        return "sed: an option may write files or take a script from one"
    if not scripts or not re.fullmatch(_SED_SCRIPT, scripts[0]):
        return "sed: its script may run another program or write a file"
    return None


def _scripts(name: str, words: Sequence[str]) -> str | None:
    """npm and its like: a script of the project by its name, without words that are handed on to who knows what."""
    harmless = ("-s", "--silent", "--if-present", "--workspaces", "-ws", "--json", "--long", "--all")
    if not words or words[0] not in SUBCOMMANDS[name].split():
        return f"{name}: this part of it may run or change more than it says"
    rest = words[1:]
    if any(word.startswith("-") and word not in harmless for word in rest):
        return f"{name}: an option may run another program"
    runs = words[0] in ("test", "t", "tst", "run", "run-script", "start", "stop", "restart")
    if runs and len([word for word in rest if word[:1] != "-"]) > (1 if words[0].startswith("run") else 0):
        return f"{name}: further words are handed on to the script"
    return None


def _targets(name: str, words: Sequence[str]) -> str | None:
    """make and its like: names of targets, and nothing that sets a variable or names another file."""
    harmless = re.compile(
        r"-[0-9]*[jksqv]+[0-9]*|[0-9]+|--(jobs|keep-going|silent|quiet|verbose|version)(=[0-9]+)?"
    )
    for word in words:
        if (word[:1] in ("-", "+", "@") or "=" in word) and not harmless.fullmatch(word):
            return f"{name}: {word[:40]} may run another program"
    return None


def _pytest(name: str, words: Sequence[str]) -> str | None:
    """It runs what it is pointed at, which must lie in the project."""
    if any(word.startswith("/") or ".." in re.split(r"[/=]", word) or "=/" in word for word in words):
        return "pytest: it would run code from outside the folder"
    return _risky_option(name, OPTIONS["pytest"], words)


def _cd(name: str, words: Sequence[str]) -> str | None:
    """Beyond the project other files decide what the next command does."""
    inside = len(words) == 1 and words[0][:1] not in ("", "/", "-") and ".." not in words[0].split("/")
    return None if inside else "cd: it leaves the folder"


def _second_written(name: str, words: Sequence[str]) -> str | None:
    """uniq and xxd write to the second file that they are given."""
    files = [word for word in words if not word.startswith("-") or word == "-"]
    return f"{name}: it writes the second file" if len(files) > 1 else None


def _tar(name: str, words: Sequence[str]) -> str | None:
    """The first word may be a cluster of options without its dash."""
    bundled = [f"-{words[0]}"] if words and not words[0].startswith("-") else []
    return _risky_option(name, OPTIONS["tar"], [*bundled, *words])


_SPECIAL: dict[str, Callable[[str, Sequence[str]], str | None]] = {
    "cd": _cd,
    "git": _git,
    "sed": _sed,
    "gsed": _sed,
    "tar": _tar,
    "gtar": _tar,
    "bsdtar": _tar,
    "pytest": _pytest,
    "py.test": _pytest,
    **dict.fromkeys(("npm", "pnpm", "yarn"), _scripts),
    **dict.fromkeys(
        names("make gmake just task rake gradle gradlew ant scons ninja invoke inv tox nox"), _targets
    ),
    **dict.fromkeys(("uniq", "xxd"), _second_written),
}
