// `await using`, which Node 24 runs as it is and Node 20 cannot parse.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Sidecar } from "@sidecar/client";

import { COMMAND, folderOf, scripted } from "../support.mjs";

const environment = (folder) => ({ HOME: folder, SIDECAR_DATA_DIR: folder });

test("the end of the block closes the sidecar, and its process is gone", async () => {
  const folder = folderOf();
  let left;
  {
    await using app = await Sidecar.spawn({ command: COMMAND, model: "echo:", env: environment(folder), cwd: folder });
    assert.equal(await (await app.chat("tab-7")).prompt("Hello").text(), "Hello");
    left = app;
    process.kill(app.pid, 0);
  }
  await assert.rejects(left.models(), /closed/);
  assert.throws(() => process.kill(left.pid, 0), { code: "ESRCH" });
});

test("the end of the block cancels an answer and closes a subscription", async (t) => {
  const { folder, model } = scripted([{ text: "half of it" }, { hang: true }]);
  const app = await Sidecar.spawn({ command: COMMAND, model, env: environment(folder), cwd: folder });
  t.after(() => app.close());
  const chat = await app.chat("tab-7");
  await using followed = chat.events();
  {
    await using answer = chat.prompt("go");
    for (let event; event?.type !== "message.delta"; ) event = (await answer.next()).value;
  }
  for await (const event of followed) {
    if (event.type !== "turn.ended") continue;
    assert.equal(event.data.reason, "cancelled");
    break;
  }
});
