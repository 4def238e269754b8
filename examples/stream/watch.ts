// Reacts to a run's events: prints where it stands now and then, and stops it once the loss is low enough.
// npx node examples/stream/watch.ts [LOSS]
import { Runtime } from "troupe";

const enoughNats = Number(process.argv[2] ?? 3);

await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, memory: { everySteps: 5 } });

const events = runtime.events({
  kinds: ["run.started", "step.finished", "memory.measured", "actor.failed", "run.finished", "run.failed"],
  // Delivers every fifth step, and every event of the other kinds.
  sample: { "step.finished": { every: 5 } },
  // If this loop is slow, the oldest go: training never waits for it.
  buffer: 256,
});

const run = runtime.run(new URL("../hello/job.ts", import.meta.url), { steps: 600 }).catch((error) => error);

for await (const event of events) {
  // `event` has the type of its kind: a misspelt field does not compile.
  if (event.kind === "run.started")
    console.log(`${event.numParameters} parameters on ${event.numRanks} ranks`);
  if (event.kind === "memory.measured") {
    const kinds = Object.entries(event.byKind).map(([kind, { liveBytes }]) => `${kind} ${liveBytes >> 10}`);
    console.log(`rank ${event.rank} holds, in KiB: ${kinds.join(", ")}`);
  }
  if (event.kind === "actor.failed") console.log(`${event.actor} failed: ${event.cause.message}`);
  if (event.kind === "run.finished" || event.kind === "run.failed") break;
  if (event.kind !== "step.finished") continue;
  console.log(`step ${event.step}: ${event.lossNats.toFixed(3)} nats, overlap ${event.overlap.toFixed(2)}`);
  if (event.lossNats < enoughNats) {
    console.log(`enough: ${event.lossNats.toFixed(3)} < ${enoughNats} after ${event.step} steps`);
    break;
  }
}
await runtime.stop();
await run;
console.log(`events lost: ${events.numDropped}`);
