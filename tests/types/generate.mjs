// Writes generated/schemas.ts and generated/methods.ts from the OpenRPC document, with the two generators that the
// reference names. `tsc` then compiles them with schemas.ts and methods.ts beside this file.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const here = new URL(".", import.meta.url).pathname;
const document = `${here}../../protocol/openrpc.json`;
const target = `${here}generated`;

rmSync(target, { recursive: true, force: true });
mkdirSync(target);

const text = JSON.stringify(JSON.parse(readFileSync(document, "utf8")).components.schemas);
const definitions = JSON.parse(text.replaceAll("#/components/schemas/", "#/definitions/"));
const schemas = await compile({ title: "Sidecar", type: "object", definitions }, "Sidecar", {
  unreachableDefinitions: true,
});
writeFileSync(`${target}/schemas.ts`, schemas);

const typings = `${here}node_modules/@open-rpc/typings/build/cli.js`;
execFileSync(process.execPath, [typings, "-d", document, "--output-ts", target, "--name-ts", "methods"]);
