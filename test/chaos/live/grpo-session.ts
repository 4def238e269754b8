// GRPO with a staleness of 0, in one program that prints what became of it; its argument says how its actors are struck.
import { Runtime, tensor } from "../../../src/entries/index.ts";
import { groupAdvantages, rollouts, tokenWeights } from "../../../src/entries/objectives.ts";
import type { SortingJudge } from "../../fixtures/sorting-judge.ts";
import { Chance } from "../chance.ts";
import type job from "./grpo-job.ts";
import { endOf, type SessionOrder, Strikes } from "./strikes.ts";

const [rounds, samples] = [8, 4];
const prompts = [3, 141, 592, 653].map((n) => [...`${n}`.padStart(3, "0"), 10].map(Number));

const order = JSON.parse(process.argv[2] ?? "{}") as SessionOrder;
const { layout, placement } = order;
const runtime = await Runtime.spawn({
  ...layout,
  placement,
  threadsPerRank: 1,
  seed: 5,
  maxRestarts: 1_000,
  ...(layout.pp !== undefined && { accumulation: 2 }),
  checkpoint: { inMemoryEverySteps: 2 },
});
const strikes = new Strikes(runtime, order);
const judges = await runtime.actors.pool<SortingJudge, { endsAt: number; once: string }>({
  name: "judges",
  module: new URL("../../fixtures/sorting-judge.ts", import.meta.url),
  placement,
  size: 2,
  restarts: 1_000,
  warmStandby: true,
  init: () => ({ endsAt: -1, once: "" }),
});
const policy = await runtime.open<typeof job>(new URL("./grpo-job.ts", import.meta.url));
const reference = await policy.frozenCopy();
strikes.begin();

const draw = new Chance(3);
for await (const { round, texts, marks } of rollouts({
  rounds,
  staleness: 0,
  write: async (round) => {
    const written = await policy.generate(prompts, { samples, maxNewTokens: 3, seed: round, temperature: 1 });
    return written.map(({ sequence }) => sequence);
  },
  judge: (texts, round) => judges.ask("mark", { texts, round }, { deadlineMs: 60_000 }),
})) {
  strikes.note(Promise.resolve({ round, texts, marks }));
  const tokens = tensor(texts, { dtype: "int64" });
  const { rows } = await reference.call("logProbs", { tokens });
  const weights = tokenWeights(
    tensor(texts.map((text) => text.map((_, place) => Number(place > 3)))),
    "sequence",
  );
  const advantages = groupAdvantages(tensor(marks), samples);
  const batch = { tokens, weights, advantages, reference: rows.logProbs };
  strikes.note(policy.accumulate("grpo", batch));
  strikes.note(policy.step({ lr: 1e-2 }));
  // Some strikes come while nothing is asked of the ranks.
  if (draw.below(2) === 0) await new Promise((resolve) => setTimeout(resolve, 200));
}
const parameters = await policy.parameters();
strikes.end();
const ended = await endOf(strikes, parameters);
await policy.close();
await runtime.stop();
process.stdout.write(`\n${JSON.stringify(ended)}\n`);
