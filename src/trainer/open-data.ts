import { actorModules } from "../actors/index.ts";
import type { FeederInit, FeederProtocol, OpenedData } from "../protocols/index.ts";
import type { ActorSystem } from "../runtime/index.ts";

/**
 * Opens the data once, in a thread of its own, to learn what a model must know of it.
 * @throws what the job's `data` throws, before anything else is started
 */
export async function openData(
  system: ActorSystem,
  init: FeederInit,
  deadlineMs: number,
): Promise<OpenedData> {
  const scout = await system.spawn<FeederProtocol, FeederInit>({
    // Not the name of the one that feeds the run, which would then be told as its second generation.
    name: "scout",
    module: actorModules.feeder,
    init,
  });
  try {
    return await scout.ask("open", {}, { deadlineMs });
  } finally {
    await system.stopActor(scout);
  }
}
