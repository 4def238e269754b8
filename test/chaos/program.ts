// A program that trains until it is ended: what the cycles start and kill. `program.ts PLACEMENT TEXT CACHE FOLDER`.
import { Runtime } from "../../src/entries/index.ts";

const [placement, data, cache, dir] = process.argv.slice(2) as ["thread" | "process", string, string, string];
await using runtime = await Runtime.spawn({
  ranks: 2,
  placement,
  threadsPerRank: 1,
  steps: 1_000_000,
  offload: { optimizer: "nvme", dir },
  // One program after the other saves there.
  checkpoint: { dir, everySteps: 3, overwrite: true },
});
runtime.events$.subscribe((event) => {
  if (event.kind === "run.started" || event.kind === "step.finished") process.send?.(event.kind);
});
// As `troupe run` does: asked to end, it ends its threads and processes first.
process.on("SIGTERM", () => void runtime.stop());
await runtime
  .run(new URL("../fixtures/jobs/struck.ts", import.meta.url), { data, cache, pauseMs: 5 })
  .catch(() => {});
