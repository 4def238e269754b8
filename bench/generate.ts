// How many tokens a second are written, beside transformers in the same minutes? GPT-2 of 124 million random parameters and a LLaMA
// as large, float32 by default: 64 prompts of 16 to 128 tokens, 4 samples each, drawn at temperature 1. Once all texts have as many
// tokens; once each token ends its text by chance, as texts do. The peer pads the prompts on the left. The price of an invariant
// forward is that of writing so, and of training steps so, by turns with those that are not.
//
//   npm run bench -- generate        (PYTHON names a Python with torch and transformers, without one our own figures only; DEVICE, ROUNDS, TOKENS, MODELS, DTYPE)

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "../scripts/arguments.mjs";
import { dematerialize, evaluating, materialize } from "../src/compute/nn/index.ts";
import {
  type Device,
  grad,
  itemBytes,
  liveTensors,
  memory,
  onDevice,
  scope,
  setInvariant,
  setNumThreads,
  tensor,
} from "../src/compute/tensor/index.ts";
import { saveHuggingFaceFolder } from "../src/library/checkpoint/index.ts";
import { Ending } from "../src/library/models/generation/ending.ts";
import { Generator } from "../src/library/models/generation/generator.ts";
import { settle } from "../src/library/models/generation/options.ts";
import { GPT2LMHeadModel, LlamaForCausalLM, weightBytes } from "../src/library/models/index.ts";
import { Transformers } from "./generate/transformers.ts";
import { load, machine } from "./measure/machine.ts";
import { median } from "./measure/median.ts";

const NEW_TOKENS = Number(process.env.TOKENS ?? 64);
const NUM_PROMPTS = 64;
const SAMPLES = 4;
const NUM_ROUNDS = Number(process.env.ROUNDS ?? 1);
const BAR = 3;
const MEMORY_BAR = 1.1;
const TRAINED_LENGTH = 512;
const numThreads = cpus().length;
const device = (process.env.DEVICE ?? "cpu") as Device;
const dtype = process.env.DTYPE === "bfloat16" ? "bfloat16" : "float32";

readArguments(
  "usage: npm run bench -- generate\n\nPYTHON names a Python with torch and transformers; ROUNDS, TOKENS, MODELS (gpt2, llama), DTYPE (float32, bfloat16) and DEVICE (cpu, cuda:0) say what is timed. The peer is on the CPU.",
  {},
);
setNumThreads(numThreads);
const models = {
  gpt2: () => new GPT2LMHeadModel(),
  llama: () =>
    new LlamaForCausalLM({
      ...{ vocab_size: 32000, hidden_size: 768, intermediate_size: 2048, num_hidden_layers: 12 },
      ...{ num_attention_heads: 12, num_key_value_heads: 4, max_position_embeddings: 1024 },
    }),
};
const python = process.env.PYTHON;
console.log(machine());
if (python === undefined) console.log("no PYTHON with transformers: our own figures only");

for (const name of (process.env.MODELS ?? "gpt2,llama").split(",") as (keyof typeof models)[]) {
  const model = models[name]();
  onDevice(device, () => materialize(model, { seed: 1, dtype }));
  const folder = mkdtempSync(join(tmpdir(), "troupe-generate-"));
  await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
  const peer = python === undefined ? undefined : await Transformers.start(python, folder, numThreads);
  const { vocabSize } = model;
  const prompts = Array.from({ length: NUM_PROMPTS }, (_, row) =>
    Array.from(
      { length: 16 + ((37 * row) % 113) },
      (__, place) => (7919 * (row + 1) + 104729 * place) % vocabSize,
    ),
  );
  const numHeads = model instanceof GPT2LMHeadModel ? 12 : 4; // of keys and values, 64 wide, in 12 layers
  const bytesOfPosition = 12 * 2 * numHeads * 64 * itemBytes(dtype);
  /** @returns tokens a second, and the most memory of keys and values beside what the texts of that moment need */
  const write = (maxNewTokens: number, stopTokens: readonly number[], seed: number, isInvariant = false) => {
    const options = settle(prompts, { samples: SAMPLES, maxNewTokens, stopTokens, seed }, {});
    setInvariant(isInvariant);
    const begin = performance.now();
    let [numTokens, mostBytes, mostPositions] = [0, 0, 0];
    onDevice(device, () => {
      using generator = new Generator(model, prompts, {
        options,
        ending: new Ending(options),
        adjust: undefined,
      });
      evaluating(model, () => {
        while (!generator.isDone) {
          for (const { tokens } of scope(() => generator.step())) numTokens += tokens.length;
          mostBytes = Math.max(mostBytes, generator.used.bytes);
          mostPositions = Math.max(mostPositions, generator.used.numPositions);
        }
      });
    });
    const seconds = (performance.now() - begin) / 1000;
    setInvariant(false);
    return { speed: numTokens / seconds, memory: mostBytes / (mostPositions * bytesOfPosition) };
  };
  /** @returns tokens a second of a forward and backward */
  const train = (isInvariant: boolean) => {
    setInvariant(isInvariant);
    const begin = performance.now();
    const step = () => {
      const row = Array.from({ length: TRAINED_LENGTH }, (_, place) => (7919 * place) % vocabSize);
      const inputIds = tensor([row], { dtype: "int64" });
      const { loss } = evaluating(model, () => model.forward(inputIds, { labels: inputIds })); // without dropout
      const gradients = grad(
        [loss],
        model.parameters().map((parameter) => parameter.tensor),
      );
      gradients[0]?.narrow(0, 0, 1).sum().item(); // waits for a device
    };
    onDevice(device, () => scope(step));
    setInvariant(false);
    return (TRAINED_LENGTH * 1000) / (performance.now() - begin);
  };
  // A random model finds every token about as likely: each ends its text with this probability.
  const often = Math.round(NEW_TOKENS / 2);
  const stops = Array.from({ length: Math.floor(vocabSize / often) }, (_, place) => place * often);
  write(2, [], 0); // touches the memory
  await peer?.write({ prompts: prompts.slice(0, 4), samples: SAMPLES, newTokens: 2, stops: [] });
  const [live, held] = [liveTensors(), memory().totalBytes];
  for (const [what, stopTokens] of [
    [`${NEW_TOKENS} tokens each`, []],
    [`at most ${NEW_TOKENS}, each the last with probability 1/${often}`, stops],
  ] as const) {
    const ours: number[] = [];
    const invariant: number[] = [];
    const theirs: number[] = [];
    let mostMemory = 0;
    for (let round = 0; round < NUM_ROUNDS; round++) {
      const written = write(NEW_TOKENS, stopTokens, round);
      ours.push(written.speed);
      mostMemory = Math.max(mostMemory, written.memory);
      invariant.push(write(NEW_TOKENS, stopTokens, round, true).speed);
      const answer = await peer?.write({
        prompts,
        samples: SAMPLES,
        newTokens: NEW_TOKENS,
        stops: stopTokens,
      });
      if (answer !== undefined) theirs.push(answer.numTokens / answer.seconds);
    }
    const ratio = median(ours.map((speed, round) => speed / (theirs[round] ?? Number.NaN)));
    const beside =
      peer === undefined
        ? ""
        : `, transformers ${median(theirs).toFixed(0)}: ${ratio.toFixed(2)} × (bar ${BAR})`;
    const price = median(invariant.map((speed, round) => speed / (ours[round] ?? Number.NaN)));
    console.log(`${name}, ${what}: ${median(ours).toFixed(0)} tokens/s${beside}; load ${load()}`);
    console.log(
      `  keys and values: ${mostMemory.toFixed(3)} × what the tokens need (bar ${MEMORY_BAR}); invariant: ${median(invariant).toFixed(0)} tokens/s, ${price.toFixed(2)} ×`,
    );
  }
  const trained = [0, 1, 2].map(() => [train(false), train(true)] as const);
  const [plain, own] = [0, 1].map((each) => median(trained.map((speeds) => speeds[each] ?? 0)));
  console.log(
    `${name}, forward and backward of ${TRAINED_LENGTH} tokens: ${plain?.toFixed(0)} tokens/s, invariant ${own?.toFixed(0)}; load ${load()}`,
  );
  console.log(`  ${liveTensors() - live} tensors and ${memory().totalBytes - held} bytes left behind`);
  peer?.stop();
  dematerialize(model);
  rmSync(folder, { recursive: true });
}
