/** Finds the program `sidecar`: in the app's resources, in a package for this platform, or on PATH. */
import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";

import { SidecarDied } from "./errors.js";
import { location } from "./location.js";

const EXECUTABLE = process.platform === "win32" ? "sidecar.exe" : "sidecar";

/** The optional package that has the program for this platform, such as `@sidecar/linux-x64`. */
export const PLATFORM_PACKAGE = `@sidecar/${process.platform}-${process.arch}`;

/**
 * The path of the program. Looks in this order, so that what an app ships comes before what a machine happens to have:
 * `sidecar/sidecar` and `sidecar` in the resources of a packaged Electron app, the platform's package, PATH.
 */
export function findSidecar(env: NodeJS.ProcessEnv = process.env): string {
  const path = env["PATH"] ?? env["Path"] ?? "";
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  const found = [...inResources(), ...inPackage(), ...folders.map((folder) => join(folder, EXECUTABLE))].find(isProgram);
  if (found === undefined) {
    throw new SidecarDied(
      `Found no program ${EXECUTABLE}: neither in the app's resources, nor in the package ${PLATFORM_PACKAGE}, nor on` +
        " PATH. Install one of them, or pass `command`.",
    );
  }
  return found;
}

function inResources(): string[] {
  // Electron's main process has it; Node has not.
  const { resourcesPath } = process as NodeJS.Process & { resourcesPath?: string };
  return resourcesPath ? [join(resourcesPath, "sidecar", EXECUTABLE), join(resourcesPath, EXECUTABLE)] : [];
}

function inPackage(): string[] {
  for (const from of [location, process.argv[1] ?? ""]) {
    try {
      const folder = dirname(createRequire(from).resolve(`${PLATFORM_PACKAGE}/package.json`));
      // An archive cannot be executed: electron-builder unpacks native programs beside it.
      return [join(folder.replace(/app\.asar(?=[\\/])/, "app.asar.unpacked"), "bin", EXECUTABLE)];
    } catch {
      // Not installed, or no file to begin from.
    }
  }
  return [];
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
