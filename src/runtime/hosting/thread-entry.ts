import { parentPort, workerData } from "node:worker_threads";
import { FRAMES_KEPT } from "../../errors/index.ts";
import "../relative-imports.ts";
import type { Boot } from "../actor/actor-host.ts";
import { refuseExit } from "./refuse-exit.ts";
import type { ThreadStart } from "./thread-start.ts";

// Entry of every actor's thread. It loads its modules and waits for its actor. Once the actor has ended, the thread exits by
// itself while no native call is running; messages posted before still arrive.
Error.stackTraceLimit = FRAMES_KEPT;
const exit = refuseExit(process);
const { hostActor } = await import("../actor/actor-host.ts");
const { moduleUrls, modules } = workerData as ThreadStart;
if (modules !== undefined) (await import("../module-texts.ts")).keepModules(modules);
for (const url of moduleUrls) await import(url).catch(() => {});
const boot = await new Promise<Boot>((resolve) => parentPort?.once("message", resolve));
await hostActor(boot, { onEnd: ({ kind }) => exit(kind === "stopped" ? 0 : 1) });
