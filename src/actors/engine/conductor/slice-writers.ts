import type { ActorRef } from "../../../runtime/index.ts";
import type { CheckpointerProtocol, RankGroup, SliceWriter } from "../../protocols/index.ts";

/** Options of {@link sliceWriters}. */
export interface SliceWritersOptions {
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  readonly generation: number;
  /** Whether hosts that cannot see the run's folder write into one of their own; else the checkpointer writes everything then. */
  readonly mayBeApart: boolean | undefined;
  readonly deadlineMs: number;
}

/**
 * The writer of each rank's share of a save, by rank: the group's writers if they all find the checkpointer's mark in the run's
 * folder, or may write elsewhere.
 */
export async function sliceWriters(
  { writers }: Pick<RankGroup, "writers">,
  { checkpointer, generation, mayBeApart, deadlineMs }: SliceWritersOptions,
): Promise<readonly SliceWriter[]> {
  if (checkpointer === undefined || writers.length === 0) return [];
  for (const writer of writers) writer.tell("begin", { generation });
  const { mark } = await checkpointer.ask("mark", {}, { deadlineMs });
  if (mark === undefined) return [];
  const seen = await Promise.all(writers.map((writer) => writer.ask("sees", { mark }, { deadlineMs })));
  if (!mayBeApart && !seen.every(({ sees }) => sees)) return [];
  return writers.map((ref, rank) => ({ ref, isApart: seen[rank]?.sees !== true }));
}
