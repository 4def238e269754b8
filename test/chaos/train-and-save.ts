// Trains twelve steps, saves every third, and says what came of it: the run whose saves fail.
// `train-and-save.ts FOLDER TEXT CACHE [STARVED FED]`: between the steps STARVED and FED no descriptor can be opened.
import { spawn } from "node:child_process";
import { Runtime } from "../../src/index.ts";

const [dir = "", data, cache, starved, fed] = process.argv.slice(2);
// It waits beside the run, since nobody can be called for help without a descriptor.
const warden =
  starved === undefined
    ? undefined
    : spawn("sh", ["-c", `while read most; do prlimit --pid ${process.pid} --nofile=$most:; done`], {
        stdio: ["pipe", "ignore", "inherit"],
      });
const limitDescriptors = (most: number): void => void warden?.stdin.write(`${most}\n`);
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
  if (event.kind === "step.finished") {
    losses[event.step - 1] = event.lossNats;
    if (event.step === Number(starved)) limitDescriptors(3);
    if (event.step === Number(fed)) limitDescriptors(1_024);
  }
  if (event.kind === "checkpoint.saved") saved.push(event.step);
  if (event.kind === "checkpoint.failed") failed.push({ step: event.step, code: event.error.code });
});
// At a pace at which the warden keeps up.
const pauseMs = warden === undefined ? 0 : 100;
await runtime.run(new URL("../fixtures/jobs/struck.ts", import.meta.url), { data, cache, pauseMs });
await runtime.stop();
warden?.stdin.end();
process.stdout.write(`\n${JSON.stringify({ losses, saved, failed })}\n`);
