"""The paths that must open and change nothing outside, and how each is refused. Braces name the tree's folders.

`trees.hostile` builds what they go through. `ESCAPES` are those that can be said without knowing where the tree
is, for tests that reach a project through something else, such as a tool.
"""

from __future__ import annotations

import re

from tests.unit.workspace.trees import Tree

Verdict = tuple[str, str | None]

OUTSIDE = """\
..|../|../..|../.|/|//|/.|/..|../outside|../outside/secret.txt|./../outside/secret.txt|\
../outside/secret.txt/|\
..//outside//secret.txt|../outside/./secret.txt|../outside/sub/../secret.txt|a/../../outside/secret.txt|\
a/b/../../../outside/secret.txt|missing/../../outside/secret.txt|inside.txt/../../outside/secret.txt|\
out_dir/../../outside/secret.txt|../project_evil/secret.txt|{root}_evil/secret.txt|\
{root}/../outside/secret.txt|\
{root}/a/../../outside/secret.txt|{root}/./../outside/secret.txt|{root}//..//outside/secret.txt|{root}/..|\
{outside}/secret.txt|{outside}/sub/|/{outside}/secret.txt|{extra}/../outside/secret.txt|{extra}_evil|\
{base}|\
../extra/../outside/secret.txt|{root}%/inside.txt|{root}\\inside.txt|{root}.|{root} |{root}\n/inside.txt|\
/etc/passwd|//etc/passwd|///etc/passwd|/./etc/passwd|/../etc/passwd|/etc/../etc/passwd|/tmp|\
/root/.ssh/id_rsa|\
../etc/passwd|../../etc/passwd|../../../../../../../../../../../../etc/passwd|\
/proc/self/root{outside}/secret.txt|\
/proc/self/root/etc/passwd|/proc/thread-self/root/etc/passwd|/proc/self/cwd/pyproject.toml|\
/proc/self/environ|\
/proc/1/environ|/proc/self/mem|/proc/self/fd/0|/proc/self/fd/1|/proc/self/exe|/dev/fd/0|/dev/stdin|\
/dev/zero|\
/dev/null|/dev/tty|/sys/kernel/notes|../outside/chats.db|{outside}/chats.db|../outside/%2e%2e|../ outside|\
../outside/new.txt|../new.txt|../project_evil|../project_evil/new.txt|../project_evil/new/er.txt|../.sidecar|\
../Project/inside.txt|../PROJECT/inside.txt|../project2|../project\u200b/inside.txt|../projec|../project /x|\
../project\\inside.txt|../project./inside.txt|../project\t/inside.txt|../projec\u0442/inside.txt|../project%2f..|\
../outside/chats.db-wal|../outside/chats.db-shm|../outside/chats.db-journal|{outside}/new.txt|\
{outside}/new/er.txt|{root}2/new.txt|{root}_evil/new.txt|{root}/../new.txt|{root}/a/../../new.txt|\
/proc/self/cwd/../outside/secret.txt|/proc/self/root{outside}/new.txt|/proc/self/fd/3/secret.txt"""

LINKS_OUT = """\
out_file|out_rel|out_dir/secret.txt|out_dir/sub/secret.txt|out_dir/./secret.txt|out_dir//secret.txt|\
out_dir|out_dir/|\
out_dir/none|out_abs|out_abs/secret.txt|{root}/out_dir/secret.txt|./out_rel|a/../out_rel|a/up|\
a/up/secret.txt|\
a/up/sub/secret.txt|a/b/climb|chain1|chain2|chain3|parent|parent/outside/secret.txt|\
parents/outside/secret.txt|\
parent/project/inside.txt|top|top/etc/passwd|top{outside}/secret.txt|top/proc/self/root/etc/passwd|\
dotty|slashy|\
trailing|trailing/secret.txt|evil/secret.txt|bounce|absolute_inside|into_extra/more.txt|in_and_out|\
nowhere|far|\
proc_root|proc_root/etc/passwd|proc_root{outside}/secret.txt|proc_cwd/pyproject.toml|proc_fd/0|\
proc_fd/1|proc_exe|\
environ|zero|stdin|out_rel/.|\
again|again/inside.txt|again/new.txt|new_folder_out|new_folder_out/x.txt|proc|proc/version|\
proc/self/environ|proc_thread/etc/passwd|proc_task|proc_maps|proc_maps/x|dev_fd/0|dev_fd/1|shared|\
shared/new.txt|sys|sys/kernel/notes|sys/fs/cgroup/new|temporary|temporary/new.txt"""

# On the way they name something that is not there, or are nothing but odd names.
NOT_THERE = """\
missing_and_out|file_and_out|file_slash|inside.txt/x|inside.txt/a/b|a/b/deep.txt/x|fifo/x|socket/x|\
hard/x|none|a/none|\
out_dir/../outside/secret.txt|out_dir/../secret.txt|..%2foutside%2fsecret.txt|%2e%2e/outside/secret.txt|\
%2e%2e%2foutside%2fsecret.txt|%252e%252e/outside/secret.txt|..%c0%afoutside|..%5coutside|\
..%00/outside/secret.txt|\
..\\outside\\secret.txt|\\..\\outside|a\\..\\..\\outside|..;/outside/secret.txt|.. /outside/secret.txt|\
 ../outside/secret.txt|..\t/outside/secret.txt|..\n/outside/secret.txt|..\r/outside|\
\n../outside/secret.txt|\
\uff0e\uff0e/outside/secret.txt|\u2025/outside/secret.txt|\u2024\u2024/outside/secret.txt|\u2026/outside|\
\u3002\u3002/outside|..\u200b/outside/secret.txt|\u200e../outside|.\u0323./outside|\
..\u2215outside\u2215secret.txt|\
..\uff0foutside\uff0fsecret.txt|..\u2044outside|\udcae\udcae/outside|.../outside|\
..../outside/secret.txt|...|....|\
~|~/secret.txt|~root/.ssh/id_rsa|$HOME/x|${HOME}/x|$(pwd)|`pwd`|file:///etc/passwd|\
file://localhost/etc/passwd|\
C:\\Windows\\win.ini|C:/Windows/win.ini|\\\\host\\share|\\\\?\\C:\\x|inside.txt.|inside.txt |\
inside.txt...|INSIDE.TXT\u200b|\
inside.txt::$DATA|inside.txt%00|inside.txt\n|*|?|a/*|[a]|-|--|-rf|a/b/..namedfork/rsrc|inside.txt\\|\
new_in|new_folder_in|new_folder_in/x.txt|new_in_chain|self/new_in|selves/new_in|again/../project/inside.txt|\
CON|NUL|COM1|LPT1.txt|aux.txt|nul.txt|PRN|a/CON|con/../NUL|con:|a/b/deep.txt::$INDEX|a/b/deep.txt;1|\
\\\\.\\pipe\\x|\\??\\C:\\x|.git/hooks/none|.ssh/id_rsa|%2f%2e%2e%2f|%2e.|.%2e|..%01|..%ff|a%2f..%2f..|\
%c0%ae%c0%ae/outside|~/../none|~nobody/none|\uff5e/none|\u301c/none|%7e/none|$PWD/none|%HOME%/none|\
\u0430/b/deep.txt|ins\u0456de.txt|inside\u3002txt|inside.t\u200dxt|\ufeffinside.txt|inside.txt\u00a0|\
inside.txt\u3000|http://localhost/none|data:text/plain,x|inside.txt?x|inside.txt#x|inside.txt:x|a:b|>x|\
 inside.txt|\tinside.txt|a/b/ deep.txt|a /b/deep.txt|\x1b[2Jinside.txt|\x7f|\x01|a/\x08/none|\
\u202etxt.edisni|\U000e0001|e\u0301|\u00e9"""

WRONG_KIND = """\
|.|./|a|a/|a/b/|a/.|a/..|{root}|{root}/|{root}/.|//{root}//|{extra}|a/b/..|to_folder|fifo|./fifo|\
{root}/fifo|to_fifo|\
socket|./socket|self|selves|self/a|self/a/b/|self/.|to_fifos|to_socket|self/fifo|self/socket|selves/to_fifo|\
a/../fifo|fifo/|socket/|missing/../socket|self/to_folder|to_folder/"""

OWN = """\
hard|./hard|hard/|{root}/hard|a/../hard|a/b/hard|hard.txt|soft|a/soft|to_folder/hard|missing/../hard|\
to_hard|to_soft|self/hard|selves/a/b/hard|self/soft|self/hard.txt|a//soft"""

LOOPS = """\
loop|loop/x|loop_a|loop_b|loop_in|long0|long5/|a/../loop|{root}/loop|loop_far|self/loop|selves/loop_a|loop/|\
loop_a/x|loop_b/../loop_a|long0/x|self/long3"""

BAD_NAMES = [
    *(
        "\0",
        "inside.txt\0",
        "inside.txt\0.png",
        "../outside/secret.txt\0.txt",
        "\0../outside",
        "a/\0/../../outside",
    ),
    *(
        "x" * 256,
        "a/" + "x" * 256,
        "\u00e9" * 128,
        "a/" * 2100,
        "./" * 2100,
        "../" * 1400 + "etc/passwd",
        "x" * 1_000_000,
    ),
    *("\ud800", "a/\udfff", "\ud83d/inside.txt", "/" * 5000, "inside.txt" + "/" * 5000),
]


# Each link that leads to a folder outside, and what can be said after it.
FOLDERS_OUT = "out_dir|out_abs|a/up|trailing|evil|a/b/out|a/b/abs|a/mid|first|around|self/out_dir|selves/a/up"
AFTER = "|/|/.|/secret.txt|//secret.txt|/./secret.txt|/sub/secret.txt|/new.txt|/new/er.txt"

# Each link that leads out, said in ways that a check of the text may not see through.
AROUND = "./@|self/@|selves/@|a/../@|self/self/@|missing/../@|a//..//@|@/|{root}/@"
FILES_OUT = (
    "out_file|out_rel|chain1|parent|top|dotty|in_and_out|nowhere|far|proc_root|new_out|database|log|tty|full"
)


def escapes(tree: Tree) -> dict[str, Verdict]:
    """Every path, spelled for this tree, and how it is refused."""
    folders = {name: str(getattr(tree, name)) for name in ("root", "extra", "outside", "base")}
    return {_spelled(path, folders): verdict for path, verdict in _TABLE.items()}


def _spelled(path: str, folders: dict[str, str]) -> str:
    for name, folder in folders.items():
        path = path.replace(f"{{{name}}}", folder)
    return path


_TABLE: dict[str, Verdict] = {
    path: verdict
    for paths, verdict in (
        (OUTSIDE.split("|"), ("denied", "outside")),
        (LINKS_OUT.split("|"), ("denied", "outside")),
        (
            [folder + after for folder in FOLDERS_OUT.split("|") for after in AFTER.split("|")],
            ("denied", "outside"),
        ),
        (
            [way.replace("@", link) for way in AROUND.split("|") for link in FILES_OUT.split("|")],
            ("denied", "outside"),
        ),
        (NOT_THERE.split("|"), ("not_found", None)),
        (WRONG_KIND.split("|"), ("denied", "kind")),
        (OWN.split("|"), ("denied", "own_file")),
        (LOOPS.split("|"), ("denied", "links")),
        (BAD_NAMES, ("denied", "name")),
    )
    for path in paths
}

ESCAPES: list[str] = [path for path in _TABLE if not re.search(r"\{(root|extra|outside|base)\}", path)]
"""Relative to the folder `project` of the tree, or absolute; the tree may be anywhere."""
