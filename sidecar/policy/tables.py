"""What is known of programs: which run other code, by which options they write files, which only read.

No table of this kind is ever whole, so it never gives leave: it takes it from rules with wildcards, whose author cannot
have thought of every option (`programs`). A rule without one still holds.
"""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """Names, separated by blanks."""
    return frozenset(text.split())


_RUNS = "it runs the code that it is given"
_STARTS = "it starts another program"
_REACHES = "it sends to and takes from other machines, and writes files"
_BUILTIN = "it changes what the shell's next words mean, or runs them"
_WRITES = "it writes the files that it names"
_SERVES = "it works through a service or a container, which can do anything"

WHOLE: dict[str, str] = {
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

OPTIONS: dict[str, str] = {
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
    "less": "--log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content --tag-file -o -O -k -T +",
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
ends in `!` is found only as it stands."""

ANY_PROGRAM = "--exec --exec-batch --eval --pager --editor --shell --to-command --use-compress-program"
"""What these mean is the same wherever they are known."""

SUBCOMMANDS: dict[str, str] = {
    "cargo": "build b check c test t clippy fmt doc bench tree metadata version",
    "gh": "pr issue run search release workflow status label",
    "go": "build vet test list version fmt doc",
    "npm": "test t tst run run-script start stop restart ls list ll view info show outdated why explain ping whoami",
    "pip": "list show freeze check",
    "pnpm": "test t run run-script start ls list outdated why",
    "yarn": "test run start list why outdated info",
}
"""Of programs with many: those that a rule with a wildcard may reach. Others install, publish, or may be an alias."""

GIT: dict[str, str] = dict.fromkeys(
    names("""
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
"""Git's own commands, which no alias can stand in for, with their options that run or write something else."""

GIT_READS = names(
    """
    status log diff show blame annotate rev-parse rev-list ls-files ls-tree cat-file describe shortlog grep reflog
    merge-base name-rev show-ref for-each-ref check-ignore check-attr add commit
    """
)

READERS = names(
    """
    cat ls grep egrep fgrep rg ag head tail wc nl tac less more file stat du diff cmp comm cut sort uniq tr fold column
    md5sum sha1sum sha256sum cksum basename dirname realpath readlink tree find fd fdfind bat jq test [ echo printf cd
    pwd true false od hexdump strings xxd base64 which type locate sed zcat zgrep ps
    """
)
"""Programs that only look at the files that they name, unless `risk` says otherwise."""
