"""The programs that some agents load in place of hooks: each runs `sidecar hook` and applies its answer.

Plain JavaScript without dependencies. Whatever goes wrong in it, the agent goes on as if it were not there.
"""

from __future__ import annotations

import json

from .hook_formats import LIMIT_S

HEAD = "// Written by `sidecar connect`; `sidecar connect NAME --remove` removes it."
"""By this line a script is recognised as ours."""

_RUN = """\
import { spawn } from "node:child_process";

const COMMAND = %(command)s;
const LIMIT_MS = %(limit)s;

// Runs the hook for an event; gives {} when it has no answer, fails or takes too long.
function hook(event, payload) {
  return new Promise((resolve) => {
    let text = "";
    let child;
    const done = () => {
      clearTimeout(timer);
      try { resolve(text ? JSON.parse(text) : {}); } catch { resolve({}); }
    };
    const timer = setTimeout(() => { text = ""; child?.kill(); done(); }, LIMIT_MS);
    try {
      child = spawn(COMMAND[0], [...COMMAND.slice(1), event], { stdio: ["pipe", "pipe", "ignore"] });
      child.on("error", () => { text = ""; done(); });
      child.on("close", done);
      child.stdout.on("data", (data) => { text += data; });
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify(payload));
    } catch { done(); }
  });
}

const textOf = (parts) =>
  typeof parts === "string" ? parts
  : (Array.isArray(parts) ? parts : []).map((part) => part?.text ?? "").filter(Boolean).join("\\n");
"""

_OPENCODE = """
const created = new Set();
const started = new Set();
const contexts = new Map();

export const Sidecar = async ({ directory }) => {
  const run = (event, sessionID, more) => hook(event, { session_id: sessionID, cwd: directory, ...more });
  return {
    event: async ({ event }) => {
      const id = event.properties?.info?.id ?? event.properties?.sessionID;
      if (event.type === "session.created") created.add(id);
      if (event.type === "session.deleted") { started.delete(id); contexts.delete(id); }
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!started.has(sessionID)) {
        started.add(sessionID);
        const source = created.has(sessionID) ? "startup" : "resume";
        const { context } = await run("session_start", sessionID, { source });
        if (context) contexts.set(sessionID, context);
      }
      const text = textOf(parts.filter((part) => part.type === "text" && !part.synthetic));
      if (!text) return;
      const { context } = await run("prompt", sessionID, { text });
      if (context) contexts.set(sessionID, context);
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      const context = contexts.get(sessionID);
      if (context) system.push(context);
    },
    "experimental.session.compacting": async ({ sessionID }, output) => {
      const { context } = await run("before_compaction", sessionID, { source: "auto" });
      if (context && Array.isArray(output.context)) output.context.push(context);
    },
    "experimental.text.complete": async ({ sessionID }, { text }) => {
      if (text) await run("answer", sessionID, { text });
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const { deny } = await run("before_tool", sessionID, { tool_name: tool, tool_input: args, tool_use_id: callID });
      if (deny) throw new Error(deny);
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const text = textOf(result?.output ?? result?.content);
      await run("after_tool", sessionID, { tool_name: tool, tool_input: args, tool_use_id: callID, text });
    },
  };
};
"""

_PI = """
export default function (pi) {
  const run = (event, ctx, more) => {
    const id = ctx.sessionManager?.getSessionId?.() ?? "";
    return hook(event, { session_id: id, cwd: ctx.cwd, ...more });
  };
  let waiting = "";
  pi.on("session_start", async (event, ctx) => {
    const resumed = ["resume", "fork", "reload"].includes(event.reason);
    const { context } = await run("session_start", ctx, { source: resumed ? "resume" : "startup" });
    waiting = context ?? "";
  });
  pi.on("before_agent_start", async (event, ctx) => {
    const { context } = await run("prompt", ctx, { text: event.prompt });
    const content = context ?? waiting;
    waiting = "";
    return content ? { message: { customType: "sidecar", content, display: false } } : undefined;
  });
  pi.on("tool_call", async (event, ctx) => {
    const call = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId };
    const { deny } = await run("before_tool", ctx, call);
    return deny ? { block: true, reason: deny } : undefined;
  });
  pi.on("tool_result", async (event, ctx) => {
    const call = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId };
    await run("after_tool", ctx, { ...call, text: textOf(event.content) });
  });
  pi.on("session_before_compact", async (_event, ctx) => {
    await run("before_compaction", ctx, { source: "auto" });
  });
  pi.on("agent_end", async (event, ctx) => {
    const answers = (event.messages ?? []).filter((message) => message.role === "assistant");
    const text = textOf(answers.at(-1)?.content?.filter?.((part) => part.type === "text"));
    if (text) await run("answer", ctx, { text });
  });
}
"""


def opencode_plugin(command: list[str]) -> str:
    """The plugin of OpenCode and its relatives, which runs this command with the name of an event."""
    return f"{HEAD}\n{_RUN % _values(command)}{_OPENCODE}"


def pi_extension(command: list[str]) -> str:
    """The extension of Pi and its relatives, which runs this command with the name of an event."""
    return f"{HEAD}\n{_RUN % _values(command)}{_PI}"


def _values(command: list[str]) -> dict[str, str | int]:
    return {"command": json.dumps(command), "limit": LIMIT_S * 1000}
