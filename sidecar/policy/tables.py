"""Knowledge about programs: which run other code, with which options they write files, which only read.

No such table is ever complete, so it never allows anything: it only restricts rules with wildcards, whose author
cannot have thought of every option (`programs`). A rule without a wildcard still applies.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return a set of names, separated by blanks."""
    return frozenset(text.split())


_RUNS = "it runs the code that it is given"
_STARTS = "it starts another program"
_REACHES = "it sends to and takes from other machines, and writes files"
_BUILTIN = "it changes what the shell's next words mean, or runs them"
_WRITES = "it writes the files that it names"
_SERVES = "it works through a service or a container, which can do anything"

RISKY_PROGRAMS: dict[str, str] = {
    name: reason
    for reason, programs in {
        _RUNS: """
            sh bash dash zsh ksh mksh fish csh tcsh ash rbash busybox toybox pwsh powershell cmd nu xonsh elvish
            python pypy ipython perl ruby irb node nodejs deno bun tsx ts-node php lua luajit tclsh wish expect awk
            gawk mawk nawk osascript java jshell groovy scala kotlin julia r rscript ghci runghc runhaskell swift
            elixir iex erl guile sbcl clisp racket emacs vi vim vim.basic nvim view ex ed m4 dc sqlite3 sqlite psql
            mysql mariadb mongosh redis-cli gdb lldb cmake ctest meson bazel mvn mvnw convert magick ffmpeg gcc g++
            cc c++ clang clang++ ld tcc rustc latex pdflatex xelatex lualatex jupyter patch
        """,
        _STARTS: """
            env sudo doas su runuser pkexec nohup timeout nice ionice chrt setsid stdbuf unbuffer time xargs parallel
            watch script flock chroot unshare nsenter bwrap firejail setpriv capsh taskset numactl systemd-run at
            batch crontab screen tmux strace ltrace valgrind perf ip npx pnpx bunx uvx pipx uv poetry pipenv hatch
            pdm rye conda mamba nix nix-shell direnv mise asdf rustup watchexec entr nodemon concurrently dotenv
            caffeinate open xdg-open start run-parts start-stop-daemon dbus-run-session setarch linux64 catchsegv
        """,
        _REACHES: """
            ssh scp sftp rsync rclone mosh telnet nc ncat netcat socat curl wget aria2c http https ftp lftp mail
            sendmail openssl gpg aws gcloud az
        """,
        _BUILTIN: """
            eval source . exec command builtin alias unalias trap enable set shopt export declare typeset local
            readonly unset read readarray mapfile let getopts bind complete compgen compopt fc history hash jobs
            wait umask ulimit pushd popd dirs disown suspend logout caller return shift break continue
        """,
        _WRITES: "tee dd sponge split csplit install mkfifo mknod",
        _SERVES: "docker podman nerdctl kubectl helm terraform tofu ansible vagrant systemctl launchctl",
    }.items()
    for name in programs.split()
}

RISKY_OPTIONS: dict[str, str] = {
    "ack": "--pager --output --ackrc --noenv",
    "ag": "--pager --path-to-ignore",
    "bat": "--pager --config-file",
    "black": "--config",
    "cargo": "--config --manifest-path --target-dir --out-dir --artifact-dir --lockfile-path -Z -C",
    "cpio": "--rsh-command --file --to-stdout -F -O -o -p -i",
    "ctags": "--options -o -f",
    "date": "--set --file -s -f",
    "dot": "-o* -O -l*",
    "eslint": "--config --rulesdir --plugin --resolve-plugins-relative-to --format --output-file --parser"
    " --cache-location -c -f -o",
    "fd": "--exec --exec-batch -x -X",
    "fdfind": "--exec --exec-batch -x -X",
    "file": "--compile --magic-file -C -m",
    "find": "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls",
    "go": "-exec -toolexec -o! -overlay -modfile -C! -ldflags -gcflags -asmflags -gccgoflags -compiler -vettool -fuzz"
    " -cpuprofile -memprofile -blockprofile -mutexprofile -trace -coverprofile -outputdir -pkgdir -work",
    "iconv": "--output -o",
    "jest": "--config --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --testEnvironment --runner"
    " --testRunner --reporters --transform --resolver --rootDir --roots --outputFile --preset --projects"
    " --moduleDirectories --prettierPath --snapshotSerializers --testSequencer --filter -c",
    "less": "--cmd --log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content --tag-file -o -O -k -T +",
    "man": "--pager --html --config-file --preprocessor --gxditview -P -H -C -p -X",
    "more": "+",
    "mypy": "--config-file --python-executable --install-types --junit-xml --cache-dir --custom-typeshed-dir"
    " --any-exprs-report --cobertura-xml-report --html-report --linecount-report --linecoverage-report"
    " --lineprecision-report --txt-report --xml-report --xslt-html-report --xslt-txt-report --shadow-file @",
    "pandoc": "--output --filter --lua-filter --pdf-engine --pdf-engine-opt --template --extract-media --data-dir"
    " --defaults --include-in-header --syntax-definition --log -o -F -L -d",
    "pip": "--log --python --cache-dir --proxy --cert --client-cert",
    "prettier": "--plugin --config --config-path --find-config-path --plugin-search-dir --write --cache-location -w",
    "printf": "-v",
    "pylint": "--rcfile --load-plugins --init-hook --output --plugins",
    "pytest": "--config-file --override-ini --rootdir --confcutdir --pdbcls --pastebin --junitxml --junit-xml"
    " --log-file --basetemp --debug --pyargs --rsyncdir --tx --cov-report --cov-config --html --report-log --resultlog"
    " --inifile --import-mode --plugins --durations-path --json-report-file --self-contained-html -p -c -o @",
    "rg": "--pre --hostname-bin --search-zip -z",
    "ruff": "--config --output-file --cache-dir -o",
    "sdiff": "--output --diff-program -o",
    "shuf": "--output -o",
    "sort": "--output --compress-program --temporary-directory -o -T",
    "tar": "--to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command --info-script"
    " --new-volume-script --absolute-names --directory --index-file --listed-incremental --remove-files"
    " --unlink-first --recursive-unlink --overwrite --volno-file -I -F -P -C -g",
    "test": "-v -R",
    "tree": "-o -R",
    "tsc": "--project --outDir --outFile --build --init --declarationDir --tsBuildInfoFile --generateTrace"
    " --generateCpuProfile --plugins -p -b @",
    "vitest": "--config --root --dir --globalSetup --setupFiles --environment --reporter --outputFile --api --ui"
    " --pool --runner! --browser -c -r",
    "xmllint": "--output --shell --dtdvalid --load-trace -o",
    "yq": "--inplace --in-place --split-exp -i -s",
    "zip": "--unzip-command --test --output-file --move -T -O -m",
    "[": "-v -R",
}
"""A program's options that run other programs or write files. `--name` is found in its abbreviations too, `-x` in a
cluster of letters, `-name` as find and go spell them, `-x*` with its value attached; `+` and `@` begin a word. What
ends in `!` is matched only literally.
"""

ANY_PROGRAM = "--exec --exec-batch --eval --pager --editor --shell --to-command --use-compress-program"
"""Options with the same meaning in every program."""

RISKY_SUBCOMMANDS: dict[str, str] = {
    "cargo": "build b check c test t clippy fmt doc bench tree metadata version",
    "gh": "pr issue run search release workflow status label",
    "go": "build vet test list version fmt doc",
    "npm": "test t tst run run-script start stop restart ls list ll view info show outdated why explain ping whoami",
    "pip": "list show freeze check",
    "pnpm": "test t run run-script start ls list outdated why",
    "yarn": "test run start list why outdated info",
}
"""Programs with subcommands: those that a rule with a wildcard may match. Others install, publish, or may be an
alias.
"""

RISKY_GIT: dict[str, str] = dict.fromkeys(
    word_set("""
    status log diff show blame annotate branch tag rev-parse rev-list ls-files ls-tree cat-file describe shortlog stash
    reflog merge-base name-rev show-ref for-each-ref count-objects cherry whatchanged diff-tree diff-index diff-files
    check-ignore check-attr add commit checkout switch restore reset merge mv rm cherry-pick revert fetch pull push
    remote version show-branch range-diff merge-tree verify-commit verify-tag
    """),
    "--ext-diff --textconv --output --output-directory --exec --upload-pack --receive-pack --filters --strategy",
) | {
    "grep": "--open-files-in-pager --textconv -O",
    "merge": "--strategy -s",
    "pull": "--upload-pack --strategy -s",
    "rebase": "--exec --interactive --strategy -x -i -s",
}
"""Git's own commands, which no alias can replace, with their options that run or write something else."""

GIT_READS = word_set(
    """
    status log diff show blame annotate rev-parse rev-list ls-files ls-tree cat-file describe shortlog grep reflog
    merge-base name-rev show-ref for-each-ref check-ignore check-attr add commit
    """
)

READ_ONLY_PROGRAMS = word_set(
    """
    cat ls grep egrep fgrep rg ag head tail wc nl tac less more file stat du diff cmp comm cut sort uniq tr fold column
    md5sum sha1sum sha256sum cksum basename dirname realpath readlink tree find fd fdfind bat jq test [ echo printf cd
    pwd true false od hexdump strings xxd base64 which type locate sed zcat zgrep ps
    """
)
"""Programs that only read the files that they name, unless `risk` says otherwise."""

LISTERS = word_set(
    "ls cd find fd fdfind tree du stat test [ mkdir rmdir pwd which locate basename dirname realpath readlink"
)
"""Programs that show or make folders, and read no file in them."""

PLAIN_PROGRAMS = word_set(
    """
    cp mv rm rmdir unlink mkdir touch ln chmod chown chgrp truncate mktemp sync sleep seq yes expr date cal uname arch
    hostname whoami id groups users who uptime nproc free df printenv tty clear kill pgrep pidof : iconv shuf paste join
    tsort rev expand unexpand fmt pr nl factor numfmt b2sum sha224sum sha384sum sha512sum sum base32 basenc dos2unix
    unix2dos gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd zip tar unzip git
    """
)
"""Programs that change only what their words name, and start no other program unless `risk` says so."""

SYSTEM_FOLDERS = word_set("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /opt/homebrew/bin")
"""Folders in which a known name is the known program. Anywhere else it may be a copy of any other."""

UNSEEN_WRITES: dict[str, str] = {
    "cpio": "-i -p --extract --pass-through",
    "cp": "-r -R -a -d --recursive --archive",
    "ar": "x",
    "jar": "x -x --extract",
    "7z": "x e",
    "7za": "x e",
    "7zr": "x e",
    "7zz": "x e",
    "rar": "x e",
    "unrar": "x e",
    "arj": "x e",
    "lha": "x e -x -e",
    "zpaq": "x extract",
    "zstd": "-r",
    "gzip": "-r --recursive",
    "curl": "-O -J --remote-name --remote-name-all --remote-header-name --output-dir",
}
"""Options and first words with which a program writes files whose names the line does not show. A word without a dash
is the program's command, alone or as a letter of its first word.
"""

UNSEEN_WHOLE = word_set(
    """
    unzip funzip bsdunzip unar cabextract unshield dpkg-deb rpm2archive rsync rclone scp sftp wget aria2c lftp
    patch unsquashfs uudecode munpack ripmime debugfs pax dar star restore svn hg bzr fossil
    """
)
"""Programs that always do so."""

GIT_UNSEEN = word_set(
    """
    checkout switch restore reset merge pull rebase cherry-pick revert apply am stash clone worktree submodule
    read-tree checkout-index sparse-checkout archive bisect init
    """
)
"""Git's commands that write files of a commit or a patch into the project."""

GREPS = word_set("grep egrep fgrep zgrep")
"""They walk only with an option, and then the working folder if no file is named."""

WALKERS: dict[str, int] = {"rg": 1, "ag": 1, "ack": 1, "git grep": 1, "git clean": 0, "tar": 0, "zip": 0}
"""Programs that always take all beneath a folder, with the number of words up to which they take the working folder."""
