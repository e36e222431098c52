// Writes dist/esm and dist/cjs, each with declarations. CommonJS knows its own file by another name than ES modules
// do, so that one source file (`location.ts`) differs; `tsc` compiles a copy of the sources with the other one.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));

const CJS_LOCATION = `/** The file that this module is in, for \`createRequire\`. */
export const location: string = __filename;
`;

const compile = (...options) => execFileSync(process.execPath, [tsc, ...options], { cwd: root, stdio: "inherit" });

for (const folder of ["dist", "build"]) rmSync(root + folder, { recursive: true, force: true });
compile("-p", "tsconfig.json");

cpSync(`${root}src`, `${root}build/src`, { recursive: true });
writeFileSync(`${root}build/src/location.ts`, CJS_LOCATION);
writeFileSync(`${root}build/package.json`, '{ "type": "commonjs" }\n');
writeFileSync(
  `${root}build/tsconfig.json`,
  JSON.stringify({
    extends: "../tsconfig.json",
    compilerOptions: { rootDir: "src", outDir: "../dist/cjs", typeRoots: ["../node_modules/@types"] },
    include: ["src"],
  }),
);
compile("-p", "build/tsconfig.json");
mkdirSync(`${root}dist/cjs`, { recursive: true });
writeFileSync(`${root}dist/cjs/package.json`, '{ "type": "commonjs" }\n');
rmSync(`${root}build`, { recursive: true, force: true });
