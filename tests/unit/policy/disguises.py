"""Command lines that run `rm a` without saying so: each is a way to write the program's name, in a way to run it.

Whether a line really does is for a shell to say (`runs_rm`): a generator whose lines do nothing would prove nothing.
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.patience import PATIENCE_S

SHELLS = [shell for shell in ("bash", "dash", "zsh") if shutil.which(shell)]

NAMES = (
    "r$()m",
    "r``m",
    "r$(:)m",
    "r${x}m",
    "${x}rm",
    "r$@m",
    "$(echo rm)",
    "`echo rm`",
    "$(printf 'r\\155')",
    "$(printf '\\162m')",
    "$(echo mr | rev)",
    "$(echo RM | tr A-Z a-z)",
    "$(printf %s r m)",
    "$(echo cm0= | base64 -d)",
    "{r,}m",
    "$'\\x72m'",
    "$'\\162\\155'",
    "$'r\\u006d'",
    '$"rm"',
    "r\\m",
    "\\r\\m",
    "r''m",
    'r""m',
    "'r''m'",
    '"r"m',
    "r\\\nm",
    "/bin/r?",
    "/bin/r[m]",
    "/???/r[l-n]",
    "/bin/../bin/rm",
    "//bin//rm",
    "rm",
)

RUNNERS = (
    "{0} a",
    "x={0}; $x a",
    "x='{0} a'; eval $x",
    "eval {0} a",
    "eval '{0} a'",
    "command {0} a",
    "exec {0} a",
    "env {0} a",
    "env X=1 {0} a",
    "nohup {0} a",
    "timeout 5 {0} a",
    "nice -n 1 {0} a",
    "setsid -w {0} a",
    "stdbuf -o0 {0} a",
    "time {0} a",
    "! {0} a",
    "({0} a)",
    "{{ {0} a; }}",
    "true && {0} a",
    "false || {0} a",
    "true; {0} a",
    "true\n{0} a",
    "true & {0} a",
    "if true; then {0} a; fi",
    "for f in a; do {0} $f; done",
    "case a in a) {0} a;; esac",
    "f() {{ {0} a; }}; f",
    "{0}${{IFS}}a",
    "{0}\ta",
    "{0} \\\na",
    "{0} a # harmless",
    "# harmless\n{0} a",
    "{0} a </dev/null",
    "</dev/null {0} a",
    "X=1 {0} a",
    "echo a | xargs {0}",
    "echo {0} a | sh",
    "printf '%s\\n' '{0} a' | sh",
    "sh -c '{0} a'",
    "sh <<E\n{0} a\nE",
    "trap '{0} a' EXIT",
    "find a -exec {0} {{}} \\;",
    "echo '{0} a' > s; sh s",
    "echo '{0} a' > s; . ./s",
    "echo '{0} a' > s; chmod +x s; ./s",
    "awk 'BEGIN{{system(\"{0} a\")}}'",
    "cat <<'E' | sh\n{0} a\nE",
    ": $({0} a)",
    "echo `{0} a`",
    ": ${{x:-$({0} a)}}",
    "cat <({0} a)",
)

OTHERS = (
    "cp /bin/rm x; ./x a",
    "ln -s /bin/rm x && ./x a",
    "cat /bin/rm > x; chmod +x x; ./x a",
    "mkdir -p d; cp /bin/rm d/ls; PATH=d:$PATH ls a",
    "mkdir -p d; cp /bin/rm d/ls; d/ls a",
    "echo cm0gYQ== | base64 -d | sh",
    "printf '\\162\\155\\40\\141' | sh",
    'python3 -c \'import os; os.system("r"+"m a")\'',
    "python3 -c 'import shutil,subprocess; subprocess.run([chr(114)+chr(109),chr(97)])'",
    'perl -e \'system("r"."m a")\'',
    "printf 'x:\\n\\tr\\155 a\\n' > Makefile; make",
    "printf 'x:\\n\\t$R a\\nR=r$(E)m\\n' > Makefile; make x",
    "git -c alias.x='!r\"\"m a' x",
    "alias ls=rm; eval 'ls a'",
    "IFS=,; x=rm,a; $x",
    'set -- rm a; "$@"',
    "x=r; y=m; $x$y a",
    "x=mrm; ${x#m} a",
    "x=(rm a); ${x[@]}",
    "read x <<< 'rm a'; $x",
    "printf -v x rm; $x a",
    "source <(echo rm a)",
    "tar cf x.tar --files-from=/dev/null --checkpoint=1 --checkpoint-action=exec='rm a'; rm a",
    "xargs -a /dev/null rm a",
    'awk \'BEGIN{print "r" "m a"}\' | sh',
    "rev <<< 'a mr' | bash",
    "echo 'r''m a' | tee s | sh",
    "coproc rm a; wait",
    "bash -c $'\\x72\\x6d a'",
    "sed '1e rm a' /etc/hostname",
    "sort --compress-program=rm a; eval rm a",
    "busybox sh -c 'rm a'",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm a",
    "prlimit rm a",
    "setarch -R rm a",
    "unshare rm a",
    "flock s rm a",
    "script -qc 'rm a' /dev/null",
    "ionice rm a",
    "taskset 1 rm a",
    "chrt -o 0 rm a",
    "env -S 'rm a'",
    "env -i /bin/rm a",
    "split -n 1 --filter='rm a' /etc/hostname",
    "choom -n 0 rm a",
    "uclampset -m 0 rm a",
    "runcon rm a; exec rm a",
)


def generated(seed: int, count: int) -> Iterator[str]:
    """So many different lines, the same for the same seed."""
    chosen = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < count:
        line = _made(chosen)
        if line not in seen:
            seen.add(line)
            yield line


def _made(chosen: random.Random) -> str:
    name, runner = chosen.choice(NAMES), chosen.choice(RUNNERS)
    line = runner.format(name)
    return chosen.choice(WRAPPED)(line) if chosen.random() < 0.3 else line


def _encoded(line: str) -> str:
    return f"echo {base64.b64encode(line.encode()).decode()} | base64 -d | sh"


def _octal(line: str) -> str:
    return "printf '" + "".join(f"\\{byte:03o}" for byte in line.encode()) + "' | sh"


def _hex(line: str) -> str:
    return "eval $'" + "".join(f"\\x{byte:02x}" for byte in line.encode()) + "'"


WRAPPED: tuple[Callable[[str], str], ...] = (
    _encoded,
    _octal,
    _hex,
    lambda line: f"true && {{ {line}\n}}",
    lambda line: f"ls >/dev/null; {line}",
    lambda line: f"cat /dev/null | cat; {line}",
    lambda line: f'echo "$({line})"',
)


def runs_rm(shell: str, line: str, folder: Path) -> bool:
    """Whether the shell runs rm by this line: a fake one that only writes down its call, or the real one on the file
    `a`, in a folder of its own."""
    tools, place = folder / "tools", folder / "place"
    tools.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "a").write_text("")
    called = folder / "called"
    called.unlink(missing_ok=True)
    fake = tools / "rm"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {called}\n')
    fake.chmod(0o755)
    path = f"{tools}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    try:
        subprocess.run(
            [shell, "-c", line],
            cwd=place,
            env={"PATH": path, "HOME": str(place)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return called.exists() or not (place / "a").exists()
