// What the app answers when the sidecar asks: permissions, tools, inputs, unsaved text; with the real sidecar.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { RpcError } from "@sidecar/client";

import { all, scripted, spawned, textOf } from "./support.mjs";

test("a permission is asked of the app, and a handler that fails denies", async (t) => {
  const write = (path) => ({ toolCall: { name: "write_file", input: { path, content: "x\n" } } });
  const asked = [];
  const onPermission = (request) => {
    asked.push(request.subject);
    if (asked.length === 2) throw new Error("no window");
    return "allow_once";
  };
  const options = scripted([write("a.txt"), write("b.txt"), { text: "Done." }]);
  const app = await spawned(t, { ...options, onPermission });
  const chat = await app.chat("tab-7", { projectPath: options.folder });
  const events = await all(chat.prompt("go"));
  assert.deepEqual(events.filter(({ type }) => type === "permission.resolved").map(({ data }) => data.decision), [
    "allow_once",
    "deny_once",
  ]);
  assert.equal(textOf(events), "Done.");
});

test("the model calls a tool of the app", async (t) => {
  const options = scripted([{ toolCall: { name: "weather", input: { city: "Oslo" } } }, { text: "It is sunny." }]);
  const seen = [];
  const handler = (call) => {
    seen.push(call.arguments);
    return "Sunny";
  };
  const weather = { name: "weather", description: "The weather.", inputSchema: { type: "object" }, kind: "fetch", handler };
  const app = await spawned(t, { ...options, tools: [weather], onPermission: () => "allow_once" });
  assert.equal(await (await app.chat("tab-7")).prompt("go").text(), "It is sunny.");
  assert.deepEqual(seen, [{ city: "Oslo" }]);
});

test("tools that are refused leave the old ones, also after a restart", async (t) => {
  const options = scripted([{ toolCall: { name: "weather", input: {} } }, { text: "Done." }]);
  let calls = 0;
  const handler = () => `Sunny ${++calls}`;
  const weather = { name: "weather", description: "The weather.", inputSchema: { type: "object" }, kind: "fetch", handler };
  const app = await spawned(t, { ...options, tools: [weather], onPermission: () => "allow_once" });
  await assert.rejects(app.offerTools([{ ...weather, name: "no such name" }]), (error) => {
    return error instanceof RpcError && error.errorName === "invalid_params";
  });
  const chat = await app.chat("tab-7");
  assert.equal(await chat.prompt("go").text(), "Done.");
  process.kill(app.pid, "SIGKILL");
  assert.equal(await chat.prompt("go").text(), "Done.");
  assert.deepEqual([calls, app.restarts], [2, 1]);
});

test("the model asks the user, and reads the values of the form", async (t) => {
  const ask = { toolCall: { name: "ask_user", input: { question: "Which way?", choices: ["left", "right"] } } };
  const asked = [];
  const onInput = (request) => {
    asked.push(request.message);
    return { choice: "left" };
  };
  const options = scripted([ask, { text: "Done." }]);
  const app = await spawned(t, { ...options, onInput });
  const chat = await app.chat("tab-7", { projectPath: options.folder });
  const events = await all(chat.prompt("go"));
  assert.match(asked.join(), /Which way\?/);
  const [resolved] = events.filter(({ type }) => type === "input.resolved");
  assert.deepEqual([resolved.data.action, resolved.data.by], ["accept", "user"]);
  assert.match((await toolOf(chat)).output.text, /left/);
});

test("a form that the user dismisses is cancelled", async (t) => {
  const ask = { toolCall: { name: "ask_user", input: { question: "Which way?" } } };
  const options = scripted([ask, { text: "Done." }]);
  const app = await spawned(t, { ...options, onInput: () => null });
  const chat = await app.chat("tab-7", { projectPath: options.folder });
  const events = await all(chat.prompt("go"));
  assert.deepEqual(events.filter(({ type }) => type === "input.resolved").map(({ data }) => data.action), ["cancel"]);
});

test("the model reads the text that the editor has not saved, or the file if there is none", async (t) => {
  const read = (path) => ({ toolCall: { name: "read_file", input: { path } } });
  const options = scripted([read("notes.txt"), read("saved.txt"), { text: "Done." }]);
  for (const name of ["notes.txt", "saved.txt"]) writeFileSync(join(options.folder, name), "on disk\n");
  const onReadBuffer = ({ path }) => (path.endsWith("notes.txt") ? "in the editor\n" : null);
  const app = await spawned(t, { ...options, onReadBuffer, onPermission: () => "allow_once" });
  const chat = await app.chat("tab-7", { projectPath: options.folder });
  assert.equal(await chat.prompt("go").text(), "Done.");
  assert.match((await toolOf(chat, 0)).output.text, /in the editor/);
  assert.match((await toolOf(chat, 1)).output.text, /on disk/);
});

async function toolOf(chat, index = 0) {
  const { turns } = await chat.history();
  return turns.at(-1).items.filter(({ type }) => type === "tool")[index];
}
