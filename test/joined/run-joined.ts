import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { makeOwnedFolder, removeOwnedFolder } from "../../src/runtime/hosting/owned-folder.ts";

const preload = new URL("./preload.mjs", import.meta.url);

/**
 * Joins the product's modules, in a process of its own: its threads and their memory would stay with this one.
 * @param folder - for what is joined
 * @param sources - of another checkout, ending in a slash
 * @returns the variables by which a program, and all that it starts, load them
 */
export function joinInto(folder: string, sources?: string): Readonly<Record<string, string>> {
  const script = fileURLToPath(new URL("./join.ts", import.meta.url));
  execFileSync(process.execPath, [script, folder, ...(sources === undefined ? [] : [sources])]);
  return {
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} --import=${preload}`,
    JOINED_SOURCES: folder,
    ...(sources !== undefined && { JOINED_OF: pathToFileURL(sources).href }),
  };
}

/** Whether this process loads the product's modules joined, and not as they are written. */
export function isJoined(): boolean {
  return process.env.JOINED_SOURCES !== undefined;
}

/**
 * Runs a program with the product's modules joined, and its temporary files in a folder that goes with it: what makes many small
 * runs, one after the other, spends more than half of its time on loading modules otherwise.
 * @returns its exit code
 */
export async function runJoined(program: string, args: readonly string[]): Promise<number> {
  const folder = makeOwnedFolder(tmpdir(), "troupe-joined-");
  try {
    const child = spawn(process.execPath, [...process.execArgv, program, ...args], {
      stdio: "inherit",
      env: {
        ...process.env,
        ...joinInto(join(folder, "joined")),
        NODE_COMPILE_CACHE: join(folder, "node-compile-cache"),
        TMPDIR: folder,
        // Ranks that wait leave the cores to those that start.
        OMP_WAIT_POLICY: "passive",
      },
    });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => void child.kill(signal));
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal as NodeJS.Signals];
  } finally {
    removeOwnedFolder(folder);
  }
}
