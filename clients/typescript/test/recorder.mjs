// An app that can be killed at any moment: it appends each event to a file and sends prompts p-1 to p-N, the next one
// when the one before has ended. Arguments: the command as JSON, the file, N. Started again, it continues.
import { appendFileSync, existsSync, readFileSync } from "node:fs";

import { Sidecar } from "@sidecar/client";

const [command, file, count] = process.argv.slice(2);
const stored = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
const events = stored.slice(0, -1).map((line) => JSON.parse(line)); // the last line may be cut off
const ended = new Set(events.filter(({ type }) => type === "turn.ended").map(({ turnId }) => turnId));
const accepted = events.filter(({ type }) => type === "prompt.accepted");
const done = accepted.filter(({ turnId }) => ended.has(turnId)).length;

const app = await Sidecar.spawn({ command: JSON.parse(command) });
const chat = await app.chat("tab-7");
const followed = chat.events(events.at(-1)?.seq ?? 0);
const recording = record();
for (let number = done + 1; number <= Number(count); number++) {
  await chat.prompt(`Say ${number}: ${"word ".repeat(40)}`, { promptId: `p-${number}` }).text();
}
await recording;
await app.close();

async function record() {
  let left = Number(count) - done;
  if (left === 0) return;
  for await (const event of followed) {
    appendFileSync(file, `${JSON.stringify(event)}\n`);
    if (event.type === "turn.ended" && --left === 0) break;
  }
}
