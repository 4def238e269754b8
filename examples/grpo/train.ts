// Learns to sort three digits from a judge that says right or wrong: npx node examples/grpo/train.ts [SEED]
import { Runtime, tensor } from "troupe";
import { groupAdvantages, rollouts, tokenWeights } from "troupe/objectives";
import type job from "./job.ts";

const [problems, samples, rounds, seed] = [32, 32, 500, Number(process.argv[2] ?? 0)];
/** The prompts: three digits, and 10 for "sorted". Every seventh is held out. */
const prompts = Array.from({ length: 1000 }, (_, n) => [...`${n}`.padStart(3, "0"), 10].map(Number));
const heldOut = prompts.filter((_, n) => n % 7 === 3);
const known = prompts.filter((_, n) => n % 7 !== 3);

const write = async (round: number) => {
  const drawn = Array.from({ length: problems }, (_, n) => (round * problems + n) * 389);
  const given = drawn.map((n) => known[n % known.length] as number[]);
  const options = { samples, maxNewTokens: 3, seed: seed * rounds + round };
  return (await policy.generate(given, options)).map(({ sequence }) => sequence);
};
const judge = (texts: readonly (readonly number[])[]) =>
  texts.map((text) => Number(`${text.slice(0, 3).sort()}` === `${text.slice(4)}`));
const meanOf = (marks: readonly number[]) => marks.reduce((sum, mark) => sum + mark, 0) / marks.length;

await using runtime = await Runtime.spawn({ ranks: 2, seed });
await using policy = await runtime.open<typeof job>(new URL("./job.ts", import.meta.url));
for await (const { round, texts, marks } of rollouts({ rounds, write, judge })) {
  const answers = tensor(texts.map((text) => text.map((_, place) => Number(place > 3))));
  const [rewards, tokens] = [tensor(marks), tensor(texts, { dtype: "int64" })];
  const advantages = groupAdvantages(rewards, samples);
  void policy.accumulate("loss", { tokens, weights: tokenWeights(answers, "sequence"), rewards, advantages });
  void policy.step();
  policy.report({ round, texts, rewards: marks });
  if (round % 50 === 0) console.log(`round ${round}: ${(100 * meanOf(marks)).toFixed(1)} % right`);
}
const answers = await policy.generate(heldOut, { maxNewTokens: 3, temperature: 0 });
console.log(`held out: ${(100 * meanOf(judge(answers.map(({ sequence }) => sequence)))).toFixed(1)} % right`);
