import { writeSync } from "node:fs";
import { basename } from "node:path";
import { isMainThread } from "node:worker_threads";
import { processes as mapped } from "./preload.ts";

export const processes = mapped;

// A process of actors loads this before it can receive messages, and loading never ends here.
if (isMainThread && basename(process.argv[1] ?? "") === "process-entry.ts") {
  writeSync(1, `loads ${process.pid}\n`);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
