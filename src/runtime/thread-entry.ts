import { workerData } from "node:worker_threads";
import { type Boot, hostActor } from "./actor-host.ts";

// What every actor's thread runs. Once the actor has ended it leaves by itself, at a point where no native call is
// running; what it posted before still arrives.
await hostActor(workerData as Boot, { onEnd: ({ kind }) => process.exit(kind === "stopped" ? 0 : 1) });
