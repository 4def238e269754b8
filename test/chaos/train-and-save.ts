// Trains twelve steps, saves every third, and says what came of it: the run whose saves fail. `train-and-save.ts FOLDER TEXT CACHE`.
import { Runtime } from "../../src/index.ts";

const [dir = "", data, cache] = process.argv.slice(2);
const losses: number[] = [];
const saved: number[] = [];
const failed: { step: number; code: string | undefined }[] = [];
await using runtime = await Runtime.spawn({
  ranks: 2,
  threadsPerRank: 1,
  steps: 12,
  checkpoint: { dir, everySteps: 3 },
});
runtime.events$.subscribe((event) => {
  if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
  if (event.kind === "checkpoint.saved") saved.push(event.step);
  if (event.kind === "checkpoint.failed") failed.push({ step: event.step, code: event.error.code });
});
await runtime.run(new URL("../fixtures/jobs/tiny.ts", import.meta.url), { data, cache });
await runtime.stop();
process.stdout.write(`\n${JSON.stringify({ losses, saved, failed })}\n`);
