// The client with the real sidecar.
import assert from "node:assert/strict";
import { test } from "node:test";

import { all, spawned, textOf } from "./support.mjs";

test("a prompt streams its answer up to the end of the turn", async (t) => {
  const app = await spawned(t);
  const chat = await app.chat("tab-7");
  const answer = chat.prompt("Hello there");

  const events = await all(answer);

  assert.equal(textOf(events), "Hello there");
  assert.equal(events.at(-1).type, "turn.ended");
  assert.equal(answer.reason, "end_turn");
  const { turns } = await chat.history();
  assert.deepEqual(turns.map((turn) => [turn.id, turn.status]), [[answer.turnId, "completed"]]);
});
