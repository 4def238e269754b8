import { parentPort, workerData } from "node:worker_threads";
import { FRAMES_KEPT } from "../../errors/index.ts";
import "../relative-imports.ts";
import type { Boot } from "../actor/actor-host.ts";
import { refuseExit } from "./refuse-exit.ts";
import type { ThreadBirth } from "./thread-birth.ts";

// What every actor's thread runs: it loads what it is told to and waits for its actor. Once that has ended it leaves by
// itself, at a point where no native call is running; what it posted before still arrives.
Error.stackTraceLimit = FRAMES_KEPT;
const exit = refuseExit(process);
const { hostActor } = await import("../actor/actor-host.ts");
const { moduleUrls, modules } = workerData as ThreadBirth;
if (modules !== undefined) (await import("../module-texts.ts")).keepModules(modules);
for (const url of moduleUrls) await import(url).catch(() => {});
const boot = await new Promise<Boot>((resolve) => parentPort?.once("message", resolve));
await hostActor(boot, { onEnd: ({ kind }) => exit(kind === "stopped" ? 0 : 1) });
