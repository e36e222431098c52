// What the tests share: the sidecar under test, in a folder of the test's own.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Sidecar } from "@sidecar/client";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** The program under test: that of the clone's `.venv`, or any command line in SIDECAR_TEST_COMMAND. */
export const COMMAND = process.env.SIDECAR_TEST_COMMAND?.split(" ") ?? [join(ROOT, ".venv/bin/sidecar"), "serve"];

/** A folder that is removed at the end, when no sidecar uses it any more. */
export function folderOf() {
  const folder = mkdtempSync(join(tmpdir(), "sidecar-client-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The options of a sidecar whose model takes these steps when the prompt says `go`. */
export function scripted(steps) {
  const folder = folderOf();
  const path = join(folder, "script.json");
  writeFileSync(path, JSON.stringify({ replies: [{ match: "go", steps }] }));
  return { folder, model: `scripted:${path}` };
}

/** A real sidecar that is shut down after the test. */
export async function spawned(t, options = {}) {
  const folder = options.folder ?? folderOf();
  const { folder: _, ...rest } = options;
  const env = { HOME: folder, XDG_CONFIG_HOME: join(folder, "config"), SIDECAR_DATA_DIR: join(folder, "data") };
  const app = await Sidecar.spawn({ command: COMMAND, model: "echo:", env, cwd: folder, ...rest });
  t.after(() => app.close());
  return app;
}

/** All events of an iteration. */
export async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

/** The text that the deltas of `events` make. */
export function textOf(events) {
  return events.map((event) => (event.type === "message.delta" ? event.data.text : "")).join("");
}
