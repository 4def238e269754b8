// Learns from pairs of its own texts which are preferred, those with more vowels: npx node examples/dpo/train.ts [SEED]
import { Runtime, type Tensor, tensor } from "troupe";
import type job from "./job.ts";

const [numPairs, batchSize, rounds, numNew] = [256, 64, 3, 16];
const seed = Number(process.argv[2] ?? 0);
const begins = ["The ", "A ru", "This", "rank", "with", "Step", "All ", "each"];
const prompts = begins.map((begin) => [...Buffer.from(begin)]);
const numGiven = 4;

type Text = readonly number[];
const numVowels = (text: Text) =>
  text.slice(numGiven).filter((byte) => "aeiou".includes(String.fromCharCode(byte))).length;

await using runtime = await Runtime.spawn({ ranks: 2, seed });
await using policy = await runtime.open<typeof job>(new URL("./job.ts", import.meta.url));
for (let step = 0; step < 200; step++) {
  void policy.accumulate("loss", { split: "train", position: 32 * step, numSamples: 32 });
  void policy.step();
}
/** Prints the share of vowels in what the model writes. */
async function report(when: string): Promise<void> {
  const texts = await policy.generate(prompts, { samples: 32, maxNewTokens: numNew, seed: 1000 });
  const total = texts.reduce((sum, { sequence }) => sum + numVowels(sequence), 0);
  console.log(`${when}: ${((100 * total) / (texts.length * numNew)).toFixed(1)} % vowels`);
}

await report("before");
const samples = (2 * numPairs) / prompts.length;
const written = await policy.generate(prompts, { samples, maxNewTokens: numNew, seed });
const texts = written.map(({ sequence }) => sequence);
// Neighbours begin alike.
const pairs = Array.from({ length: numPairs }, (_, n) =>
  texts.slice(2 * n, 2 * n + 2).toSorted((a, b) => numVowels(b) - numVowels(a)),
);
const tokensOf = (place: number) =>
  tensor(
    pairs.map((pair) => pair[place] as Text),
    { dtype: "int64" },
  );
const [chosen, rejected] = [tokensOf(0), tokensOf(1)];
const ofReference = async (tokens: Tensor) =>
  (await policy.call("logProbs", { tokens }, { numGiven })).rows.logProbs;
const [referenceChosen, referenceRejected] = [await ofReference(chosen), await ofReference(rejected)];
for (let round = 0; round < rounds; round++) {
  for (let first = 0; first < numPairs; first += batchSize) {
    const part = (rows: Tensor) => rows.narrow(0, first, batchSize);
    const loss = policy.accumulate(
      "dpo",
      {
        chosen: part(chosen),
        rejected: part(rejected),
        referenceChosen: part(referenceChosen),
        referenceRejected: part(referenceRejected),
      },
      { numGiven },
    );
    void policy.step({ lr: 1e-3 });
    console.log(`loss ${(await loss).lossNats.toFixed(3)}`);
  }
  await report(`round ${round}`);
}
