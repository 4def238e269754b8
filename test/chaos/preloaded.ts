import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Workspace } from "../fixtures/run-tiny.ts";

/** Whether a library can be compiled here that takes the place of the system's calls. */
export const canPreload = spawnSync("g++", ["--version"]).status === 0;

/** Compiles `NAME.cc` of this folder, once a workspace. @returns the library's path, for LD_PRELOAD */
export function preloaded(workspace: Workspace, name: "short-writes" | "moved-clock"): string {
  const library = workspace.path(`${name}.so`);
  const source = fileURLToPath(new URL(`./${name}.cc`, import.meta.url));
  if (!existsSync(library))
    execFileSync("g++", ["-std=c++20", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  return library;
}
