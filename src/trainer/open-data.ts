import { actorModules } from "../actors/index.ts";
import type { Fingerprint } from "../data/index.ts";
import type { FeederInit, FeederProtocol, OpenedData } from "../protocols/index.ts";
import type { ActorSystem } from "../runtime/index.ts";

/** A file system may take hours to read what a dataset is made of. */
const FINGERPRINT_DEADLINE_MS = 86_400_000;

/** Data that was opened, and what tells it from other data. */
export interface RunData {
  readonly opened: OpenedData;
  /** May take longer than the first steps; rejects where the dataset cannot tell. */
  readonly fingerprint: Promise<Fingerprint>;
}

/**
 * Opens the data once, in a thread of its own, to learn what a model must know of it. Where its fingerprint takes its time the
 * thread stays until that is known.
 * @throws what the job's `data` throws, before anything else is started
 */
export async function openData(system: ActorSystem, init: FeederInit, deadlineMs: number): Promise<RunData> {
  const scout = await system.spawn<FeederProtocol, FeederInit>({
    // Not the name of the one that feeds the run, which would then be told as its second generation.
    name: "scout",
    module: actorModules.feeder,
    init,
  });
  let isStaying = false;
  try {
    const opened = await scout.ask("open", {}, { deadlineMs });
    isStaying = opened.fingerprint === "later";
    if (opened.fingerprint !== "later") return { opened, fingerprint: Promise.resolve(opened.fingerprint) };
    const fingerprint = scout
      .ask("fingerprint", {}, { deadlineMs: FINGERPRINT_DEADLINE_MS })
      // A system that is stopping ends it anyway.
      .finally(() => void system.stopActor(scout).catch(() => {}));
    // Whoever waits hears of it.
    fingerprint.catch(() => {});
    return { opened, fingerprint };
  } finally {
    if (!isStaying) await system.stopActor(scout);
  }
}
