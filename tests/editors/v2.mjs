// The official TypeScript SDK, experimental version 2: a prompt, its states, a cancel, a resume with its replay.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, python, project] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${modules}/@agentclientprotocol/sdk/dist/v2/stable/acp.js`));
const sidecar = spawn(python, ["-m", "sidecar", "acp"], { cwd: project, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(sidecar.stdin), Readable.toWeb(sidecar.stdout));
const updates = [];
const { agent, client: m } = acp.methods;
const until = async (found) => {
  while (!found()) await new Promise(setImmediate);
};
const idles = () => updates.filter(({ update }) => update.sessionUpdate === "state_update" && update.state === "idle");

const seen = await acp
  .client({ name: "tests" })
  .onNotification(m.session.update, ({ params }) => void updates.push(params))
  .onRequest(m.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId },
  }))
  .connectWith(stream, async (ctx) => {
    const info = { name: "tests", version: "1" };
    const hello = await ctx.request(agent.initialize, { protocolVersion: 2, info });
    const { sessionId } = await ctx.request(agent.session.new, { cwd: project, mcpServers: [] });
    const prompt = (text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    const { messageId } = await prompt("Write it");
    await until(() => idles().length === 1);
    await prompt("hang");
    await until(() => updates.some(({ update }) => update.content?.text?.startsWith("Half")));
    await ctx.notify(agent.session.cancel, { sessionId });
    await until(() => idles().length === 2);
    const live = updates.length;
    await ctx.request(agent.session.resume, { sessionId, cwd: project, replayFrom: { type: "start" } });
    await ctx.request(agent.session.close, { sessionId });
    return {
      version: hello.protocolVersion,
      echoed: updates.some(({ update }) => update.messageId === messageId),
      stops: idles().slice(0, 2).map(({ update }) => update.stopReason),
      replayed: updates.slice(live).map(({ update }) => update.sessionUpdate),
    };
  });
sidecar.stdin.end();
seen.code = await new Promise((resolve) => sidecar.on("exit", resolve));
console.log(JSON.stringify(seen));
