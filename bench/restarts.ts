// npm run bench -- restarts: how long a live model's ranks take to be replaced, and where that time goes, on threads and in processes.
// Each kill waits, by itself until warm standbys have loaded. Modules are joined, as the package has them.

import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { countOf, numberOf, readArguments } from "../scripts/arguments.mjs";
import { Runtime } from "../src/entries/index.ts";
import { Chance } from "../test/chaos/chance.ts";
import { ActorThreads } from "../test/chaos/faults.ts";
import { phases, Replacements } from "../test/chaos/live/replacements.ts";
import { isJoined, runJoined } from "../test/joined/run-joined.ts";
import { load } from "./measure/machine.ts";

const usage = `
usage: npm run bench -- restarts [OPTIONS]

  --kills N    on each placement (4)
  --wait N     seconds before each (6)`;
const text = { type: "string" } as const;
const { values } = readArguments(usage, {
  kills: { ...text, default: "4" },
  wait: { ...text, default: "6" },
});
const kills = countOf(usage, "kills", values.kills);
const waitMs = 1000 * numberOf(usage, "wait", values.wait);
if (!isJoined()) process.exit(await runJoined(fileURLToPath(import.meta.url), process.argv.slice(2)));
const job = new URL("../examples/hello/job.ts", import.meta.url);

for (const placement of ["thread", "process"] as const) {
  using threads = new ActorThreads();
  await using runtime = await Runtime.spawn({
    ranks: 2,
    zero: 3,
    placement,
    threadsPerRank: 1,
    maxRestarts: kills + 1,
    checkpoint: { inMemoryEverySteps: 2 },
  });
  const replacements = new Replacements(runtime);
  await using model = await runtime.open(job);
  const train = async () => {
    void model.accumulate("loss", { split: "train", position: 0, numSamples: 16 });
    await model.step();
  };
  await train();
  for (let kill = 0; kill < kills; kill++) {
    await pause(waitMs);
    if (placement === "thread") replacements.struck(threads.endOne(new Chance(kill), /^rank-\d+$/) ?? "");
    else {
      const rank = runtime.inspect().find(({ actor }) => actor === `rank-${kill % 2}`);
      if (rank === undefined) throw new Error("no rank lives");
      replacements.struck(rank.actor);
      process.kill(rank.pid, "SIGKILL");
    }
    await train();
    replacements.answered();
    const { replacedMs, parts } = replacements.all[kill] ?? { replacedMs: Number.NaN, parts: {} };
    const shown = phases.map((phase) => {
      const { wallMs = Number.NaN, cpuMs } = parts[phase] ?? {};
      return `${phase} ${wallMs.toFixed(0)}${cpuMs === undefined ? "" : ` (${cpuMs})`}`;
    });
    console.log(
      `a ${placement} each: replaced in ${replacedMs.toFixed(0)} ms (load ${load()}); ${shown.join(", ")}`,
    );
  }
}
