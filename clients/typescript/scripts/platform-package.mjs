// Writes the npm package of one platform around the program: `node platform-package.mjs BINARY FOLDER`. BINARY is the
// executable, or a folder with `sidecar` in it; FOLDER gets the package, ready for `npm pack`.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [binary, folder] = process.argv.slice(2).map((path) => resolve(path));
const executable = process.platform === "win32" ? "sidecar.exe" : "sidecar";
if (!folder || !existsSync(binary)) {
  console.error(`usage: node platform-package.mjs BINARY FOLDER; there is no ${binary ?? "BINARY"}`);
  process.exit(2);
}
const { version, license } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, "bin"), { recursive: true });
// Links are followed: npm leaves them out.
if (statSync(binary).isDirectory()) cpSync(binary, join(folder, "bin"), { recursive: true, dereference: true });
else cpSync(binary, join(folder, "bin", executable));
if (!existsSync(join(folder, "bin", executable))) {
  console.error(`${binary} has no ${executable}`);
  process.exit(2);
}
chmodSync(join(folder, "bin", executable), 0o755);
const description = `The program sidecar for ${process.platform} on ${process.arch}; @sidecar/client finds it.`;
const name = `@sidecar/${process.platform}-${process.arch}`;
const manifest = { name, version, description, license, os: [process.platform], cpu: [process.arch], files: ["bin"] };
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
