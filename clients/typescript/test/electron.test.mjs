// The main-process module of the Electron example, under Node with the real sidecar.
import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { COMMAND, folderOf } from "./support.mjs";

// A copy in this package, where `@sidecar/client` is the package itself: the example has none installed.
const copy = new URL("../build/electron/chats.mjs", import.meta.url);
cpSync(new URL("../../examples/electron/chats.mjs", import.meta.url), copy);
const { Chats } = await import(copy);

async function started(t, options = {}, show = () => {}) {
  const folder = options.folder ?? folderOf();
  const chats = new Chats(show);
  await chats.start({ command: COMMAND, model: "echo:", env: { HOME: folder }, dataDir: join(folder, "data"), cwd: folder, ...options });
  t.after(() => chats.close());
  return chats;
}

test("a window that reloads in the middle of an answer shows each event once", async (t) => {
  const chats = await started(t);
  const { cursor } = await chats.open("main");
  const seen = [];
  const first = new AbortController();
  const window = chats.follow("main", cursor.seq, first.signal, (event) => {
    seen.push(event);
    if (event.type === "message.delta") first.abort();
  });
  const ended = chats.prompt("main", "one two three four five", "p-1");
  await window;

  const second = new AbortController();
  await chats.follow("main", seen.at(-1).seq, second.signal, (event) => {
    seen.push(event);
    if (event.type === "turn.ended") second.abort();
  });

  assert.equal(await ended, "end_turn");
  assert.equal(seen.filter(({ type }) => type === "message.delta").map(({ data }) => data.text).join(""), "one two three four five");
  assert.deepEqual(seen.map((event) => event.from ?? event.seq), [1, ...seen.slice(0, -1).map(({ seq }) => seq + 1)]);
});

test("a permission is asked in the windows and decided by the user", async (t) => {
  const folder = folderOf();
  const write = { toolCall: { name: "write_file", input: { path: "a.txt", content: "a\n" } } };
  writeFileSync(join(folder, "script.json"), JSON.stringify({ replies: [{ match: "Write", steps: [write, { text: "Done." }] }] }));
  const said = [];
  const chats = await started(t, { folder, projectPath: folder, model: `scripted:${join(folder, "script.json")}` }, (channel, message) => {
    said.push(channel);
    if (channel === "permission:ask") chats.answer(message.permissionId, "deny_once");
  });

  assert.equal(await chats.prompt("main", "Write", "p-1"), "end_turn");
  assert.deepEqual(said, ["permission:ask", "permission:done"]);
});
