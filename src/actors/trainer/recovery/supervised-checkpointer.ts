import type { CheckpointSettings } from "../../../job/options/index.ts";
import type { ActorRef, ActorSystem } from "../../../runtime/index.ts";
import { actorModules } from "../../index.ts";
import { type CheckpointerInit, type CheckpointerProtocol, recipientName } from "../../protocols/index.ts";
import type { ServedWeights } from "./served-weights.ts";

/** Name and role of the checkpointer, the one actor that saves. */
export const CHECKPOINTER = "checkpointer";

/**
 * Starts the checkpointer under a supervisor of its own, with growing pauses: it never stops training.
 * @param prefix - begins its name @param hold - token of the run's lock on the folder
 * @param served - weights that each incarnation has in memory from its start; the caller's
 * @throws {TroupeError} `CHECKPOINT_DIRECTORY` where the folder cannot be used
 */
export async function superviseCheckpointer(
  system: ActorSystem,
  prefix: string,
  { dir, keepLast, keepEverySteps }: CheckpointSettings,
  hold: string | undefined,
  served: ServedWeights | undefined,
): Promise<ActorRef<CheckpointerProtocol>> {
  const name = prefix + CHECKPOINTER;
  const also = keepEverySteps !== undefined && { every: keepEverySteps };
  const keep = keepLast === undefined ? undefined : { last: keepLast, ...also };
  const supervisor = await system.supervise({
    name: `${prefix}saving`,
    strategy: "one_for_one",
    backoff: { firstMs: 100, maxMs: 5_000 },
    // As many restarts as the pauses allow: a fault that costs a save or two must not end all saves of a run of weeks.
    restarts: 60,
    children: [
      {
        name,
        role: CHECKPOINTER,
        module: actorModules.checkpointer,
        init: (incarnation): CheckpointerInit => ({
          directory: dir,
          hold,
          keep,
          held: served?.refs({ owner: recipientName({ system: system.id, name, incarnation }) }),
        }),
      },
    ],
    // After the last restart every save fails and is reported; training goes on.
    onEscalate: () => {},
  });
  return supervisor.ref<CheckpointerProtocol>(name);
}
