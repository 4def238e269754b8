import type { CheckpointSettings } from "../../../job/options/index.ts";
import type { KeepRule } from "../../../library/checkpoint/index.ts";
import type { ActorRef, ActorSystem } from "../../../runtime/index.ts";
import { actorModules } from "../../index.ts";
import type { CheckpointerInit, CheckpointerProtocol } from "../../protocols/index.ts";

/** The name and the role of the one actor that saves. */
export const CHECKPOINTER = "checkpointer";

/**
 * The checkpointer under a supervisor of its own: it is started again, with growing pauses, and never stops training.
 * @param hold - of the lock that the run has taken of the folder
 * @throws {TroupeError} `CHECKPOINT_DIRECTORY` where the folder cannot be used
 */
export async function superviseCheckpointer(
  system: ActorSystem,
  { dir, keepLast, keepEverySteps }: CheckpointSettings,
  hold: string | undefined,
): Promise<ActorRef<CheckpointerProtocol>> {
  const keep = keepLast === undefined ? undefined : keepRule(keepLast, keepEverySteps);
  const supervisor = await system.supervise({
    name: "saving",
    strategy: "one_for_one",
    backoff: { firstMs: 100, maxMs: 5_000 },
    // As often as the pauses allow: what costs a save or two must not cost all saves of a run of weeks.
    restarts: 60,
    children: [
      {
        name: CHECKPOINTER,
        role: CHECKPOINTER,
        module: actorModules.checkpointer,
        init: (): CheckpointerInit => ({ directory: dir, hold, keep }),
      },
    ],
    // Given up: every further save fails and says so, training goes on.
    onEscalate: () => {},
  });
  return supervisor.ref<CheckpointerProtocol>(CHECKPOINTER);
}

function keepRule(last: number, every: number | undefined): KeepRule {
  return every === undefined ? { last } : { last, every };
}
