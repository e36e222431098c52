// ES modules and CommonJS are the same package; an app's program is found where it ships it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import * as esm from "@sidecar/client";

import { folderOf } from "./support.mjs";

const cjs = createRequire(import.meta.url)("@sidecar/client");
const NAME = process.platform === "win32" ? "sidecar.exe" : "sidecar";

/** A program that could be started, in this folder. */
function program(...folders) {
  const folder = join(...folders);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, NAME), "#!/bin/sh\n");
  chmodSync(join(folder, NAME), 0o755);
  return join(folder, NAME);
}

test("both formats export the same names", () => {
  assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort());
});

test("the app's resources come before PATH, and PATH is searched in its order", (t) => {
  const folder = folderOf();
  const onPath = [program(folder, "one"), program(folder, "two")];
  const env = { PATH: ["one", "two"].map((name) => join(folder, name)).join(delimiter) };
  assert.equal(esm.findSidecar(env), onPath[0]);
  assert.equal(cjs.findSidecar(env), onPath[0]);
  const inResources = program(folder, "resources", "sidecar");
  process.resourcesPath = join(folder, "resources");
  t.after(() => delete process.resourcesPath);
  assert.equal(esm.findSidecar(env), inResources);
});

test("the package of the platform comes before PATH", (t) => {
  const folder = folderOf();
  const onPath = program(folder, "path");
  const target = fileURLToPath(new URL(`../node_modules/${esm.PLATFORM_PACKAGE}`, import.meta.url));
  t.after(() => rmSync(join(target, ".."), { recursive: true }));
  const script = fileURLToPath(new URL("../scripts/platform-package.mjs", import.meta.url));
  execFileSync(process.execPath, [script, onPath, target]);
  for (const { findSidecar } of [esm, cjs]) assert.equal(findSidecar({ PATH: join(folder, "path") }), join(target, "bin", NAME));
});

test("without a program the error says where it was looked for", () => {
  assert.throws(() => esm.findSidecar({ PATH: "" }), (error) => error.message.includes(esm.PLATFORM_PACKAGE) && /PATH/.test(error.message));
});
