"""Whether a command does more than its name says: runs other code, or writes files that no rule has checked.

Uses `tables`, with functions for the programs that need more than a list of options.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..system.lazy import lazy_module
from .tables import (
    ANY_PROGRAM,
    GIT_READS,
    GIT_UNSEEN,
    GREPS,
    PLAIN_PROGRAMS,
    READ_ONLY_PROGRAMS,
    RISKY_GIT,
    RISKY_OPTIONS,
    RISKY_PROGRAMS,
    RISKY_SUBCOMMANDS,
    SYSTEM_FOLDERS,
    UNSEEN_WHOLE,
    UNSEEN_WRITES,
    WALKERS,
    word_set,
)

if TYPE_CHECKING:
    from . import git_history
else:
    git_history = lazy_module("sidecar.policy.git_history")


def risk_reason(argv: Sequence[str]) -> str | None:
    """Return why a rule with a wildcard must not allow this command, or None."""
    name = program_name(argv)
    # `python3.11` and `gcc-12` are what the tables call python and gcc.
    plain = re.sub(r"-?[0-9.]+$", "", name)
    words = argv[1:]
    if name not in _COPIES and (extracted := unseen_writes_reason(argv)):
        return extracted
    for known in (name, plain):
        if known in RISKY_PROGRAMS:
            return f"{known}: {RISKY_PROGRAMS[known]}"
        if known in _SPECIAL:
            return _SPECIAL[known](known, words)
        if known in RISKY_SUBCOMMANDS and (not words or words[0] not in RISKY_SUBCOMMANDS[known].split()):
            return f"{known}: this part of it may run or change more than it says"
        if known in RISKY_OPTIONS:
            return _risky_option(known, RISKY_OPTIONS[known], words)
    return _risky_option(name, ANY_PROGRAM, words)


def unknown_reason(argv: Sequence[str]) -> str | None:
    """Return why the words do not determine what this command runs, or None.

    A list of programs that run others is never complete, so this uses an allowlist: the programs that run nothing but
    themselves. A known name outside of the system folders may be a copy of any program.
    """
    if found := risk_reason(argv):
        return found
    folder, name = posixpath.split(argv[0])
    if folder and posixpath.normpath(folder) not in SYSTEM_FOLDERS:
        return f"{argv[0][:80]} may be any program"
    # Not `program`: in another case, or with a suffix, it is another file.
    if name not in READ_ONLY_PROGRAMS and name not in PLAIN_PROGRAMS:
        return f"{name[:80]} may run other programs"
    if name not in READ_ONLY_PROGRAMS and name != "git" and any(map(replaces_programs, argv[1:])):
        return f"{name}: it may copy or replace a program"
    return None


_PROGRAM_FOLDER = re.compile(r"(^|[/=])(\.?s?bin|shims)(/|$)")


def replaces_programs(path: str) -> bool:
    """Return whether a path is in a folder where a shell may look for programs."""
    return _PROGRAM_FOLDER.search(path) is not None


def unseen_writes_reason(argv: Sequence[str]) -> str | None:
    """Return why the line does not show which files this command writes, or None."""
    name, words = program_name(argv), argv[1:]
    if name in UNSEEN_WHOLE and not (name == "unzip" and _only_lists(words)):
        return f"{name}: {_UNSEEN}"
    if name in ("tar", "gtar", "bsdtar") and _is_extracting_tar(words):
        return f"{name}: {_UNSEEN}"
    if name == "git":
        part = next((word for word in words if not word.startswith("-")), "")
        return f"git {part}: {_UNSEEN}" if part in GIT_UNSEEN else None
    commands = [option for option in UNSEEN_WRITES.get(name, "").split() if option[0] != "-"]
    if commands and words and any(_is_command(words[0], command) for command in commands):
        return f"{name}: {_UNSEEN}"
    options = [option for option in UNSEEN_WRITES.get(name, "").split() if option[0] == "-"]
    found = any(len(word) > 1 and _names(word, option) for word in words for option in options)
    return f"{name}: {_UNSEEN}" if found else None


_UNSEEN = "it writes files that the line does not show"

_COPIES = word_set("git cp")
"""Programs whose rules with a wildcard cover the copied files too: their author intended that."""


def _only_lists(words: Sequence[str]) -> bool:
    """Return whether unzip only lists or tests: one cluster of options that says so, and nothing but the archive."""
    return len(words) == 2 and words[0] in ("-l", "-v", "-t", "-Z", "-p", "-z") and words[1][:1] != "-"


def _is_extracting_tar(words: Sequence[str]) -> bool:
    """Return True for anything but a plain list or creation: an extraction has many spellings."""
    clusters = [word for word in words if re.fullmatch(r"-[A-Za-z]+", word)]
    if words and not words[0].startswith("-"):
        clusters.append(f"-{words[0]}")
    long = [word.partition("=")[0] for word in words if len(word) > 2 and word.startswith("--")]
    spelled = ("--extract", "--get", "--diff", "--delete")
    return any("x" in cluster for cluster in clusters) or any(
        full.startswith(given) for given in long for full in spelled
    )


def _is_command(word: str, command: str) -> bool:
    return word == command or (len(command) == 1 and word[:1] != "-" and command in word)


def program_name(argv: Sequence[str]) -> str:
    """Return the name of the program without its folder and a Windows suffix."""
    name = posixpath.basename(argv[0].replace("\\", "/")).casefold()
    return re.sub(r"\.(exe|cmd|bat|com)$", "", name)


def walked_folders(argv: Sequence[str]) -> list[str]:
    """Return the words of a command that takes all beneath them, such as the folders of `rm -r` and `grep -r`; `.` when
    it walks the working folder without naming it.
    """
    name, words = program_name(argv), list(argv[1:])
    if name != "git" and git_history.mentions_git_files(" ".join(words)):
        return ["/"]
    if name == "git":
        if git_history.shows_files(words):
            return ["/"]  # from wherever in the project it is run
        name, words = " ".join(["git", *words[:1]]), words[1:]
    others = [word for word in words if word[:1] != "-"]
    recursive = any(re.fullmatch(r"-[A-Za-z]*[rR][A-Za-z]*|--[a-z-]*recursive", word) for word in words)
    if name not in WALKERS and not recursive and not (name == "find" and risk_reason(argv)):
        return []
    unnamed = len(others) <= WALKERS[name] if name in WALKERS else name in GREPS and len(others) <= 1
    return [*others, *(["."] if unnamed else [])]


def only_reads(argv: Sequence[str]) -> bool:
    """Return whether a program only reads the files it names."""
    if risk_reason(argv):
        return False
    name = program_name(argv)
    return name in READ_ONLY_PROGRAMS or (name == "git" and any(word in GIT_READS for word in argv[1:3]))


def _risky_option(name: str, table: str, words: Iterable[str]) -> str | None:
    """Return the first word that the table names. Words after `--` count as well: some programs pass them on."""
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
    # Such as `-c core.pager=…` or `--exec-path`.
    if not rest or rest[0].startswith("-"):
        return "git: an option before its command may run another program"
    part = rest[0]
    if part == "config" and rest[1:2] in (["--get"], ["--list"], ["-l"], ["get"], ["list"]):
        return None if not any(word.startswith("-") for word in rest[2:]) else "git config: it may be changed"
    # An alias of the repository may shadow no built-in command, but every other word.
    if part not in RISKY_GIT:
        return f"git {part[:40]}: it may be an alias, or run or change more than it says"
    if part in ("fetch", "pull", "push", "remote") and _has_address(rest[1:]):
        return f"git {part}: it names an address of its own"
    return _risky_option(f"git {part}", RISKY_GIT[part], rest[1:])


def _has_address(words: Sequence[str]) -> bool:
    """Return whether git gets more than the name of a remote; such an address may even name a program."""
    where = next((word for word in words if not word.startswith("-")), "")
    spelled = re.compile(r".*(://|::)|[/.~]|[^/:]+@|[^/:]+\.[^/:]+:", re.DOTALL)
    return ":" in where or any(map(spelled.match, words))


_SED_COMMAND = r"(([0-9]+|\$)(,\+?([0-9]+|\$))?[pdq=]|s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*|/[^/\\\n]*/[pd])"
_SED_SCRIPT = rf"{_SED_COMMAND}(; *{_SED_COMMAND})*;?"


def _sed(name: str, words: Sequence[str]) -> str | None:
    """sed scripts can run programs and write files; only printing, deleting and plain substitution are accepted."""
    scripts = [word for word in words if not word.startswith("-")]
    harmless = ("-n", "-E", "-r", "-u", "-nE", "-En", "--quiet", "--silent", "--regexp-extended")
    if any(word.startswith("-") and word not in harmless for word in words):
        return "sed: an option may write files or take a script from one"
    if not scripts or not re.fullmatch(_SED_SCRIPT, scripts[0]):
        return "sed: its script may run another program or write a file"
    return None


def _scripts(name: str, words: Sequence[str]) -> str | None:
    """npm and the like: a script of the project by its name, without arguments that are passed on."""
    harmless = ("-s", "--silent", "--if-present", "--workspaces", "-ws", "--json", "--long", "--all")
    if not words or words[0] not in RISKY_SUBCOMMANDS[name].split():
        return f"{name}: this part of it may run or change more than it says"
    rest = words[1:]
    if any(word.startswith("-") and word not in harmless for word in rest):
        return f"{name}: an option may run another program"
    runs = words[0] in ("test", "t", "tst", "run", "run-script", "start", "stop", "restart")
    if runs and len([word for word in rest if word[:1] != "-"]) > (1 if words[0].startswith("run") else 0):
        return f"{name}: further words are handed on to the script"
    return None


def _targets(name: str, words: Sequence[str]) -> str | None:
    """make and the like: names of targets, and nothing that sets a variable or names another file."""
    harmless = re.compile(
        r"-[0-9]*[jksqv]+[0-9]*|[0-9]+|--(jobs|keep-going|silent|quiet|verbose|version)(=[0-9]+)?"
    )
    for word in words:
        if (word[:1] in ("-", "+", "@") or "=" in word) and not harmless.fullmatch(word):
            return f"{name}: {word[:40]} may run another program"
    return None


def _pytest(name: str, words: Sequence[str]) -> str | None:
    """pytest runs the files that it gets, which must be in the project."""
    if any(word.startswith("/") or ".." in re.split(r"[/=]", word) or "=/" in word for word in words):
        return "pytest: it would run code from outside the folder"
    return _risky_option(name, RISKY_OPTIONS["pytest"], words)


def _cd(name: str, words: Sequence[str]) -> str | None:
    """Outside of the project, other files decide what the next command does."""
    inside = len(words) == 1 and words[0][:1] not in ("", "/", "-") and ".." not in words[0].split("/")
    return None if inside else "cd: it leaves the folder"


def _second_written(name: str, words: Sequence[str]) -> str | None:
    """uniq and xxd write to their second file argument."""
    files = [word for word in words if not word.startswith("-") or word == "-"]
    return f"{name}: it writes the second file" if len(files) > 1 else None


def _tar(name: str, words: Sequence[str]) -> str | None:
    """The first word of tar may be a cluster of options without a dash. An archive with a colon in its name is on
    another machine, which tar reaches by ssh.
    """
    if "--force-local" not in words and any(re.match(r"(--[a-z-]+=)?[^/=]+:", word) for word in words):
        return f"{name}: it may reach another machine"
    bundled = [f"-{words[0]}"] if words and not words[0].startswith("-") else []
    return _risky_option(name, RISKY_OPTIONS["tar"], [*bundled, *words])


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
        word_set("make gmake just task rake gradle gradlew ant scons ninja invoke inv tox nox"), _targets
    ),
    **dict.fromkeys(("uniq", "xxd"), _second_written),
}
