export { Conductor, type ConductorOptions } from "./conductor.ts";
export { generationEnded } from "./generation-ended.ts";

/** URLs of the actors' modules. */
export const actorModules = {
  rank: new URL("./rank.ts", import.meta.url),
  offload: new URL("./offload.ts", import.meta.url),
  shard: new URL("./shard.ts", import.meta.url),
  feeder: new URL("./feeder.ts", import.meta.url),
  sliceWriter: new URL("./slice-writer.ts", import.meta.url),
  checkpointer: new URL("./checkpointer.ts", import.meta.url),
} as const;
