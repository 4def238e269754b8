import { shareRef, type Tensor } from "../../../compute/tensor/index.ts";
import type { CheckpointSettings } from "../../../job/options/index.ts";
import type { ActorRef, ActorSystem } from "../../../runtime/index.ts";
import { actorModules } from "../../index.ts";
import {
  type CheckpointerInit,
  type CheckpointerProtocol,
  type HeldWeights,
  recipientName,
} from "../../protocols/index.ts";

/** Name and role of the checkpointer, the one actor that saves. */
export const CHECKPOINTER = "checkpointer";

/**
 * Starts the checkpointer under a supervisor of its own, with growing pauses: it never stops training.
 * @param prefix - begins its name @param hold - token of the run's lock on the folder
 * @param held - weights that each incarnation has in memory from its start; the caller's
 * @throws {TroupeError} `CHECKPOINT_DIRECTORY` where the folder cannot be used
 */
export async function superviseCheckpointer(
  system: ActorSystem,
  prefix: string,
  { dir, keepLast, keepEverySteps }: CheckpointSettings,
  hold: string | undefined,
  held: HeldWeights<Tensor> | undefined,
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
          held: held && shared(held, recipientName({ system: system.id, name, incarnation })),
        }),
      },
    ],
    // After the last restart every save fails and is reported; training goes on.
    onEscalate: () => {},
  });
  return supervisor.ref<CheckpointerProtocol>(name);
}

function shared({ tensors, ...state }: HeldWeights<Tensor>, owner: string): HeldWeights {
  const refs = Object.entries(tensors).map(
    ([name, { shape, values }]) => [name, { shape, values: shareRef(values, { owner }) }] as const,
  );
  return { ...state, tensors: Object.fromEntries(refs) };
}
