// A scripted session of a live model that prints what became of it; its argument says how its ranks are struck.
import { Runtime } from "../../../src/entries/index.ts";
import type calledJob from "../../fixtures/jobs/called.ts";
import { Chance } from "../chance.ts";
import { bitsOf, endOf, hashOf, type SessionOrder, Strikes } from "./strikes.ts";

const ROUNDS = 12;

const called = new URL("../../fixtures/jobs/called.ts", import.meta.url);

const order = JSON.parse(process.argv[2] ?? "{}") as SessionOrder;
const { data, cache, layout, placement } = order;
await using runtime = await Runtime.spawn({
  ...layout,
  placement,
  threadsPerRank: 1,
  seed: 5,
  maxRestarts: 1_000,
  checkpoint: { inMemoryEverySteps: 3 },
});
const strikes = new Strikes(runtime, order);
const config = { data, cache, ...(layout.pp === undefined ? {} : { accumulation: 2 }) };
await using model = await runtime.open<typeof calledJob>(called, config);

strikes.begin();

const note: Strikes["note"] = (answer, shown) => strikes.note(answer, shown);
const draw = new Chance(3);
for (let round = 0; round < ROUNDS; round++) {
  const range = (numSamples: number) => ({ split: "train", position: draw.below(1_000), numSamples });
  note(model.accumulate("loss", range(4)));
  if (draw.below(2) === 0) note(model.accumulate("loss", range(4 * (1 + draw.below(3)))));
  const rows = model.call("logProbs", range(1 + draw.below(6)));
  note(rows, (called) => hashOf(bitsOf(called.rows.logProbs)));
  if (draw.below(3) === 0)
    note(model.generate([[40, 41], [42]], { maxNewTokens: 4, seed: round, samples: 2 }));
  note(model.step({ lr: 1e-2 / (round + 1) }));
  // Now and then the script waits, as one that judges does.
  if (draw.below(2) === 0) await rows;
}
const parameters = await model.parameters();
strikes.end();
const ended = await endOf(strikes, parameters);
await model.close();
await runtime.stop();
process.stdout.write(`\n${JSON.stringify(ended)}\n`);
