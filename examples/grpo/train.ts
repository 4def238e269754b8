// Learns to sort three digits from a judge that says right or wrong: node examples/grpo/train.ts [SEED]
import { Runtime, tensor } from "troupe";
import { groupAdvantages, rollouts, tokenWeights } from "troupe/objectives";
import type job from "./job.ts";

const [problems, samples, rounds, seed] = [32, 32, 500, Number(process.argv[2] ?? 0)];
/** The prompts: three digits, and 10 for "sorted". Every seventh is held out. */
const prompts = Array.from({ length: 1000 }, (_, n) => [...`${n}`.padStart(3, "0"), 10].map(Number));
const heldOut = prompts.filter((_, n) => n % 7 === 3);
const known = prompts.filter((_, n) => n % 7 !== 3);
async function textsOf(given: number[][], samples: number, seed: number, temperature = 1) {
  const rows = await policy.generate(given, { samples, seed, temperature, maxNewTokens: 3 });
  return rows.map(({ tokens }, row) => [...given[Math.floor(row / samples)]!, ...tokens]);
}
const write = (round: number) => {
  const numberOf = (n: number) => ((round * problems + n) * 389) % known.length;
  const drawn = Array.from({ length: problems }, (_, n) => known[numberOf(n)]!);
  return textsOf(drawn, samples, seed * rounds + round);
};
const judge = (texts: number[][]) =>
  texts.map((text) => +(`${text.slice(0, 3).sort()}` === `${text.slice(4)}`));
const percent = (marks: number[]) => ((100 * marks.filter(Boolean).length) / marks.length).toFixed(1);

await using runtime = await Runtime.spawn({ ranks: 2, seed });
await using policy = await runtime.open<typeof job>(new URL("./job.ts", import.meta.url));
for await (const { round, texts, marks } of rollouts({ rounds, write, judge })) {
  const answers = tensor(texts.map((text) => text.map((_, place) => Number(place > 3))));
  const rewards = tensor(marks);
  const [advantages, weights] = [groupAdvantages(rewards, samples), tokenWeights(answers, "sequence")];
  const tokens = tensor(texts, { dtype: "int64" });
  void policy.accumulate("loss", { tokens, weights, rewards, advantages });
  void policy.step();
  if (round % 50 === 0) console.log(`round ${round}: ${percent(marks)} % right`);
}
console.log(`held out: ${percent(judge(await textsOf(heldOut, 1, 0, 0)))} % right`);
