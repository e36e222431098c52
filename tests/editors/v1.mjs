// The official TypeScript SDK, version 1: a session with a permission, a cancel, a load; prints what it saw as JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, python, project] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${modules}/@agentclientprotocol/sdk/dist/v1/stable/acp.js`));
const sidecar = spawn(python, ["-m", "sidecar", "acp"], { cwd: project, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(sidecar.stdin), Readable.toWeb(sidecar.stdout));
const updates = [];
const { agent, client: m } = acp.methods;

const seen = await acp
  .client({ name: "tests" })
  .onNotification(m.session.update, ({ params }) => void updates.push(params))
  .onRequest(m.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId },
  }))
  .connectWith(stream, async (ctx) => {
    const hello = await ctx.request(agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: { session: { notices: {}, compaction: {} } },
      clientInfo: { name: "tests", version: "1" },
    });
    const opened = { cwd: project, mcpServers: [], _meta: { sidecar: { chatId: "tab-7" } } };
    const { sessionId } = await ctx.request(agent.session.new, opened);
    const prompt = (text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    const worked = await prompt("Write it");
    const hanging = prompt("hang");
    while (!updates.some(({ update }) => update.content?.text?.startsWith("Half"))) await new Promise(setImmediate);
    await ctx.notify(agent.session.cancel, { sessionId });
    const cancelled = await hanging;
    const live = updates.length;
    await ctx.request(agent.session.load, { sessionId, cwd: project, mcpServers: [] });
    const listed = await ctx.request(agent.session.list, { cwd: project });
    await ctx.request(agent.session.close, { sessionId });
    return {
      version: hello.protocolVersion,
      sessionId,
      stops: [worked.stopReason, cancelled.stopReason],
      replayed: updates.slice(live).map(({ update }) => update.sessionUpdate),
      kinds: [...new Set(updates.map(({ update }) => update.sessionUpdate))].sort(),
      titles: listed.sessions.map(({ title }) => title),
    };
  });
sidecar.stdin.end();
seen.code = await new Promise((resolve) => sidecar.on("exit", resolve));
console.log(JSON.stringify(seen));
