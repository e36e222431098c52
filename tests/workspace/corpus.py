"""The paths that must open nothing, and how each is refused. Braces name the tree's folders."""

from __future__ import annotations

from tests.workspace.trees import Tree

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
/dev/null|/dev/tty|/sys/kernel/notes|../outside/chats.db|{outside}/chats.db|../outside/%2e%2e|../ outside"""

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
environ|zero|stdin|out_rel/."""

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
~|~/secret.txt|~root/.ssh/id_rsa|$HOME/x|${{HOME}}/x|$(pwd)|`pwd`|file:///etc/passwd|\
file://localhost/etc/passwd|\
C:\\Windows\\win.ini|C:/Windows/win.ini|\\\\host\\share|\\\\?\\C:\\x|inside.txt.|inside.txt |\
inside.txt...|INSIDE.TXT\u200b|\
inside.txt::$DATA|inside.txt%00|inside.txt\n|*|?|a/*|[a]|-|--|-rf|a/b/..namedfork/rsrc|inside.txt\\"""

WRONG_KIND = """\
|.|./|a|a/|a/b/|a/.|a/..|{root}|{root}/|{root}/.|//{root}//|{extra}|a/b/..|to_folder|fifo|./fifo|\
{root}/fifo|to_fifo|\
socket|./socket"""

OWN = "hard|./hard|hard/|{root}/hard|a/../hard|a/b/hard|hard.txt|soft|a/soft|to_folder/hard|missing/../hard"

LOOPS = "loop|loop/x|loop_a|loop_b|loop_in|long0|long5/|a/../loop|{root}/loop"

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


def escapes(tree: Tree) -> dict[str, tuple[str, str | None]]:
    """Every path, spelled for this tree, and how it is refused."""
    folders = {"root": tree.root, "extra": tree.extra, "outside": tree.outside, "base": tree.base}
    table: dict[str, tuple[str, str | None]] = dict.fromkeys(BAD_NAMES, ("denied", "name"))
    for text, verdict in (
        (OUTSIDE, ("denied", "outside")),
        (LINKS_OUT, ("denied", "outside")),
        (NOT_THERE, ("not_found", None)),
        (WRONG_KIND, ("denied", "kind")),
        (OWN, ("denied", "own_file")),
        (LOOPS, ("denied", "links")),
    ):
        table |= {path.format(**folders): verdict for path in text.split("|")}
    return table
