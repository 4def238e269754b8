import { isMainThread } from "node:worker_threads";

export * from "./preload.ts";

/** Far longer than a process may be silent. */
const exitMs = 10_000;

// A process of actors exits slowly: its exit blocks, as in native code that frees a lot on a busy machine.
if (isMainThread && process.argv[1]?.includes("process-entry") === true)
  process.on("exit", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, exitMs));
