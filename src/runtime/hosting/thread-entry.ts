import "../relative-imports.ts";
import { parentPort, workerData } from "node:worker_threads";
import { FRAMES_KEPT, TroupeError } from "../../errors/index.ts";
import type { Boot } from "../actor/actor-host.ts";
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

/** Makes `process.exit` of an actor's thread throw from now on: no code ends it without an error. @returns the original */
function refuseExit(host: Pick<NodeJS.Process, "exit" | "once">): NodeJS.Process["exit"] {
  const exit = host.exit.bind(host);
  // Node itself ends the thread by this function when an error is caught nowhere.
  host.once("uncaughtExceptionMonitor", () => {
    host.exit = exit;
  });
  host.exit = (code) => {
    throw new TroupeError("ACTOR_EXIT", {
      where: "process.exit",
      expected: "code that an actor runs to return or to throw",
      got: `process.exit(${code ?? ""})`,
      hint: "to end the run, throw an error",
      fields: { code },
    });
  };
  return exit;
}
