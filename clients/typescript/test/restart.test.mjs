// A sidecar that dies is started again; cancelling and refusals, all with the real sidecar.
import assert from "node:assert/strict";
import { test } from "node:test";

import { RpcError, Sidecar, SidecarDied } from "@sidecar/client";

import { all, scripted, spawned, textOf } from "./support.mjs";

const LONG = Array.from({ length: 400 }, (_, number) => `word${number}`).join(" ");

test("a sidecar that is killed is started again, and the loop ends as interrupted with every event once", async (t) => {
  const app = await spawned(t, scripted([{ text: "half of it" }, { hang: true }]));
  const chat = await app.chat("tab-7");
  const followed = chat.events();
  const answer = chat.prompt("go");
  for await (const event of answer) {
    if (event.type === "message.delta" && app.restarts === 0) process.kill(app.pid, "SIGKILL");
  }
  assert.equal(answer.reason, "interrupted");
  assert.equal(app.restarts, 1);
  const events = [];
  for await (const event of followed) {
    events.push(event);
    if (event.type === "turn.ended") break;
  }
  const seqs = events.flatMap((event) => range(event.from ?? event.seq, event.seq));
  assert.deepEqual(seqs, range(1, events.at(-1).seq));
  assert.equal((await chat.history()).turns.length, 1);
});

test("break cancels the turn", async (t) => {
  const app = await spawned(t, scripted([{ text: "on and on" }, { hang: true }]));
  const chat = await app.chat("tab-7");
  for await (const event of chat.prompt("go")) if (event.type === "message.delta") break;
  const [turn] = (await chat.history()).turns;
  assert.equal(turn.reason, "cancelled");
});

test("an AbortSignal cancels the turn and ends the loop with its reason", async (t) => {
  const app = await spawned(t, scripted([{ text: "on and on" }, { hang: true }]));
  const chat = await app.chat("tab-7");
  const abort = new AbortController();
  await assert.rejects(async () => {
    for await (const event of chat.prompt("go", { signal: abort.signal })) {
      if (event.type === "message.delta") abort.abort(new Error("enough"));
    }
  }, /enough/);
  assert.equal((await chat.history()).turns[0].reason, "cancelled");
});

test("a prompt that is sent again with its id runs once", async (t) => {
  const app = await spawned(t);
  const chat = await app.chat("tab-7");
  const texts = [await chat.prompt("Hello", { promptId: "p-1" }).text(), await chat.prompt("Hello", { promptId: "p-1" }).text()];
  assert.deepEqual(texts, ["Hello", "Hello"]);
  assert.equal((await chat.history()).turns.length, 1);
});

test("a refusal has the name of the error, and a misspelt member is refused by name", async (t) => {
  const app = await spawned(t);
  await assert.rejects(app.chat("tab-7", { ifMissing: "fail" }), (error) => {
    return error instanceof RpcError && error.errorName === "not_found" && error.code === -32002;
  });
  await assert.rejects(app.call("chat/open", { chatID: "tab-7" }), /chatID/);
});

test("aborting a call cancels the request", async (t) => {
  const app = await spawned(t);
  await assert.rejects(app.call("models/list", {}, { signal: AbortSignal.abort(new Error("closed")) }), /closed/);
});

test("after close every request says that the connection is closed, and the process is gone", async (t) => {
  const app = await spawned(t);
  const { pid } = app;
  await app.close();
  await assert.rejects(app.models(), /closed/);
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
});

test("a program that cannot be started, or ends at once, is an error with what it said", async () => {
  await assert.rejects(Sidecar.spawn({ command: ["/no/such/program"] }), (error) => {
    return error instanceof SidecarDied && /\/no\/such\/program/.test(error.message);
  });
  const crash = [process.execPath, "-e", "console.error('no such table'); process.exit(3)"];
  await assert.rejects(Sidecar.spawn({ command: crash }), (error) => error.exitCode === 3 && /no such table/.test(error.stderr));
});

test("a slow loop loses nothing", async (t) => {
  const app = await spawned(t);
  const chat = await app.chat("tab-7");
  const late = chat.events();
  assert.equal(await chat.prompt(LONG).text(), LONG);
  const events = [];
  for await (const event of late) {
    events.push(event);
    if (event.type === "turn.ended") break;
  }
  assert.equal(textOf(events), LONG);
});

function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, number) => first + number);
}
