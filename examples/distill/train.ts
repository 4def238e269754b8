// A student learns from a teacher's probabilities, on what the student itself wrote: npx node examples/distill/train.ts [SEED]
import { Runtime, tensor } from "troupe";
import { tokenWeights } from "troupe/objectives";
import type job from "./job.ts";

const [rounds, samples, numGiven] = [120, 8, 4];
const seed = Number(process.argv[2] ?? 0);
const url = new URL("./job.ts", import.meta.url);
const begins = ["The ", "A ru", "This", "rank", "with", "Step", "All ", "each"];
const prompts = begins.map((begin) => [...Buffer.from(begin)]);

await using ofTeacher = await Runtime.spawn({ ranks: 1, seed });
await using teacher = await ofTeacher.open<typeof job>(url);
await using ofStudent = await Runtime.spawn({ ranks: 1, seed: seed + 1 });
await using student = await ofStudent.open<typeof job>(url, { width: 48, layers: 1 });
for (let step = 0; step < 300; step++) {
  void teacher.accumulate("loss", { split: "train", position: 32 * step, numSamples: 32 });
  void teacher.step();
}
for (let round = 0; round < rounds; round++) {
  const written = await student.generate(prompts, { samples, maxNewTokens: 20, seed: seed * rounds + round });
  const texts = written.map(({ sequence }) => sequence);
  const tokens = tensor(texts, { dtype: "int64" });
  // A token is predicted by the one before it.
  const isWritten = texts.map((text) => text.map((_, place) => Number(place >= numGiven - 1)));
  const weights = tokenWeights(tensor(isWritten), "token");
  const { rows } = await teacher.call("logits", { tokens });
  const taught = student.accumulate("distill", { tokens, teacher: rows.logits, weights });
  void student.step();
  if (round % 20 === 0 || round === rounds - 1)
    console.log(`round ${round}: KL(student, teacher) ${(await taught).lossNats.toFixed(3)} nats`);
}
