// How many tokens a second are written, beside transformers in the same minutes? GPT-2 of 124 million random parameters in
// float32, prompts of 32 tokens, the most likely token each time: 1 prompt, and 8 side by side.
//
//   npm run bench -- generate        (PYTHON names a Python with torch and transformers, without one our own figures only; ROUNDS, TOKENS)

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "../scripts/arguments.mjs";
import { materialize } from "../src/compute/nn/index.ts";
import { liveTensors, memory, setNumThreads } from "../src/compute/tensor/index.ts";
import { saveHuggingFaceFolder } from "../src/library/checkpoint/index.ts";
import { GPT2LMHeadModel, generate, weightBytes } from "../src/library/models/index.ts";
import { Transformers } from "./generate/transformers.ts";
import { median } from "./median.ts";

const NEW_TOKENS = Number(process.env.TOKENS ?? 64);
const PROMPT_TOKENS = 32;
const NUM_ROUNDS = Number(process.env.ROUNDS ?? 5);
const BATCHES = [1, 8];
const numThreads = cpus().length;

readArguments(
  "usage: npm run bench -- generate\n\nPYTHON names a Python with torch and transformers; ROUNDS and TOKENS say how many.",
  {},
);
setNumThreads(numThreads);
const model = new GPT2LMHeadModel();
materialize(model, { seed: 1 });
const folder = mkdtempSync(join(tmpdir(), "troupe-generate-"));
await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
const python = process.env.PYTHON;
const peer = python === undefined ? undefined : await Transformers.start(python, folder, numThreads);
console.log(
  `${cpus()[0]?.model ?? "?"}, ${numThreads} threads, Node ${process.version}, ${new Date().toISOString()}`,
);
if (peer === undefined) console.log("no PYTHON with transformers: our own figures only");

const promptsOf = (count: number) =>
  Array.from({ length: count }, (_, row) =>
    Array.from({ length: PROMPT_TOKENS }, (_, place) => (7919 * (row + 1) + 104729 * place) % 50257),
  );
const write = (prompts: readonly (readonly number[])[], maxNewTokens: number) =>
  generate(model, prompts, { maxNewTokens, temperature: 0, stopTokens: [] });

for (const batch of BATCHES) {
  const prompts = promptsOf(batch);
  write(prompts, 4); // touches the memory
  await peer?.write(prompts, 4);
  const [live, held] = [liveTensors(), memory().totalBytes];
  const ours: number[] = [];
  const theirs: number[] = [];
  let equal = 0;
  for (let round = 0; round < NUM_ROUNDS; round++) {
    const begin = performance.now();
    const texts = write(prompts, NEW_TOKENS);
    ours.push((batch * NEW_TOKENS * 1000) / (performance.now() - begin));
    if (peer === undefined) continue;
    const told = await peer.write(prompts, NEW_TOKENS);
    theirs.push((batch * NEW_TOKENS) / told.seconds);
    equal =
      texts.flat().filter((token, place) => token === told.texts.flat()[place]).length / texts.flat().length;
  }
  const ratio = median(ours.map((speed, round) => speed / (theirs[round] ?? Number.NaN)));
  const beside =
    peer === undefined
      ? ""
      : `, transformers ${median(theirs).toFixed(1)}: ${ratio.toFixed(2)} × (bar 1.5), ${(100 * equal).toFixed(1)} % of the tokens equal`;
  const grown = memory().totalBytes - held;
  console.log(
    `${batch} prompt${batch === 1 ? "" : "s"}: ${median(ours).toFixed(1)} tokens/s${beside}; ${liveTensors() - live} tensors and ${grown} bytes left behind`,
  );
}
peer?.stop();
rmSync(folder, { recursive: true });
