"""Names that always ask, however they are spelled, and their harmless neighbours."""

from __future__ import annotations

from sidecar.policy.protected import protected_reason, secret_reason

CHANGES = """\
.git|.git/config|.git/hooks/pre-commit|a/b/.git/config|.GIT/config|.Git|.git./config|.git /config|.git. ./config|\
.git::$INDEX_ALLOCATION/config|git~1/config|GIT~1|.g\u200cit/config|.git\u200d/config|\uff0egit/config|\
.\uff47\uff49\uff54/config|\u2024git/config|.git\\config|a\\.git\\config|./.git/config|a/../.git/config|/abs/.git/config|\
.gitmodules|.gitattributes|sub/.gitattributes|.husky/pre-push|.githooks/x|.pre-commit-config.yaml|lefthook.yml|\
.vscode/tasks.json|.VSCode/settings.json|.idea/x.iml|.cursor/rules/a|.claude/settings.json|.codex/x|.gemini/x|.zed/x|\
.sidecar/config.toml|.mcp.json|AGENTS.md|agents.md|sub/AGENTS.MD|CLAUDE.md|CLAUDE.local.md|GEMINI.md|.cursorrules|\
.github/copilot-instructions.md|.bashrc|home/.zshrc|.profile|.envrc|.github/workflows/ci.yml|.GitHub/Workflows/ci.yml|\
.gitlab-ci.yml|.circleci/config.yml|Jenkinsfile|.npmrc|.yarnrc|.yarnrc.yml|pip.conf|sitecustomize.py|a/b.pth|.env|\
.env.local|.ENV|.ssh/config|.aws/credentials|.netrc|.pypirc|deploy.pem|.devcontainer/devcontainer.json|x.code-workspace|\
.qwen/settings.json|QWEN.md|opencode.json|sub/.opencode/plugins/x.js|.github/hooks/x.json|.codebuddy/x|CODEBUDDY.md|\
kilo.json|.kilo/plugins/x.js|.pi/extensions/x.ts|.omp/hooks/pre/x.ts|.crush.json|WARP.md|.rules|.helix/languages.toml|\
.vim/coc-settings.json|.lazy.lua|.dir-locals-2.el|.Rprofile|.pdbrc|a/.ghci|.pnp.cjs|bunfig.toml|.mise/config.toml"""

SECRETS = """\
.env|.env.production|a/.env|.Env|.env |.ssh/id_ed25519|id_rsa|.gnupg/x|.aws/credentials|.netrc|.npmrc|.pypirc|\
.git-credentials|server.pem|tls.KEY|a.p12|.kube/config|.docker/config.json|/etc/shadow|/proc/self/environ|\
.config/gcloud/x|credentials.json|prod.tfstate|.mcp.json|sub/.MCP.json|.mcp.json.|.vscode/mcp.json|.cursor/mcp.json|\
.sidecar/config.toml|a/.Sidecar/Config.toml|.claude/settings.json|.claude/settings.local.json|.codex/config.toml|\
id_rsa~|id_rsa.bak|.id_rsa.swp|.server.pem.swp|#.env#|.#.env|tls.key.orig|.netrc.old|.npmrc.~3~|credentials.json.bak.1|\
.qwen/settings.json|opencode.json|kilo.json|.codebuddy.json|.zed/settings.json|.crush.json"""

FREE = """\
.gitignore|.github/ISSUE_TEMPLATE.md|.github/dependabot.yml|git/config|x.git/config|.gitx|mygit|src/agents.py|AGENTS.txt|\
docs/CLAUDE.md.txt|rules|qwen/a.md|docs/opencode.json.md|vim/x|src/mise/x|.github/hooks.md|pi/x|Makefile|package.json|conftest.py|environment.py|env.py|.env.example|.env.sample|a/.env.template|\
id_rsa.pub|keys.py|README.md|.editorconfig|.dockerignore|.docker/Dockerfile|src/ssh/client.py|.gitkeep|a|.|\
a~|notes.bak|.notes.txt.swp|#notes#|id_rsa.pub~|~|#|.#"""


def test_names_that_steer_other_programs_ask_before_they_change() -> None:
    assert [path for path in CHANGES.split("|") if protected_reason(path) is None] == []


def test_secrets_ask_before_they_are_read_or_changed() -> None:
    assert [
        path for path in SECRETS.split("|") if secret_reason(path) is None or protected_reason(path) is None
    ] == []


def test_their_neighbours_do_not() -> None:
    assert [path for path in FREE.split("|") if protected_reason(path) or secret_reason(path)] == []


def test_what_steers_programs_may_be_read() -> None:
    assert (
        secret_reason(".git/config")
        is secret_reason("AGENTS.md")
        is secret_reason(".github/workflows/ci.yml")
        is secret_reason(".sidecar/rules/a.md")
        is secret_reason(".claude/commands/a.md")
        is secret_reason("mcp.json.md")
        is None
    )


def test_the_reason_names_the_path_and_why() -> None:
    assert protected_reason("a/.git/config") == "a/.git/config always asks: git runs programs by it"
    assert secret_reason(".env") == ".env asks: it holds keys or passwords"
