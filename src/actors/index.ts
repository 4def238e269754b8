import { preloads } from "./preloads.ts";

export { Conductor } from "./conductor.ts";

/** URLs of the actors' modules, and of the one that every thread imports first. */
export const actorModules = {
  preload: preloads.oneHost,
  /** In its place for processes on several hosts, which share memory on each host. */
  preloadHosts: preloads.severalHosts,
  /** In its place for processes that share no memory. */
  preloadApart: new URL("./preload-apart.ts", import.meta.url),
  rank: new URL("./rank.ts", import.meta.url),
  offload: new URL("./offload.ts", import.meta.url),
  shard: new URL("./shard.ts", import.meta.url),
  feeder: new URL("./feeder.ts", import.meta.url),
  sliceWriter: new URL("./slice-writer.ts", import.meta.url),
  checkpointer: new URL("./checkpointer.ts", import.meta.url),
} as const;
