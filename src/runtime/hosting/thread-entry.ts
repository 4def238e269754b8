import { parentPort, workerData } from "node:worker_threads";
import { type Boot, hostActor } from "../actor/actor-host.ts";

// What every actor's thread runs: it loads what it is told to and waits for its actor. Once that has ended it leaves by
// itself, at a point where no native call is running; what it posted before still arrives.
for (const url of workerData as readonly string[]) await import(url).catch(() => {});
const boot = await new Promise<Boot>((resolve) => parentPort?.once("message", resolve));
await hostActor(boot, { onEnd: ({ kind }) => process.exit(kind === "stopped" ? 0 : 1) });
