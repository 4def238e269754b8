// npm run bench -- dynamic-shapes --data MRPC --vocab FILE: tokens a second of fine-tuning with rows padded to the longest of all, with
// dynamic shapes, and with samples packed into one row, by turns, on the same samples in the same steps; real tokens are
// counted, padding is not.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { Runtime } from "../src/entries/index.ts";
import { median } from "./measure/median.ts";

const usage = `
usage: npm run bench -- dynamic-shapes --data FOLDER --vocab FILE [OPTIONS]

  --data FOLDER     MRPC's files, or others by tabs
  --vocab FILE      BERT's vocab.txt
  --ranks N         1, 2 or 4 (2)
  --layers N        of the BERT (4)
  --width N         of it, a multiple of 64 (256)
  --steps N         of each run (12)
  --rounds N        by turns (2)
  --precision NAME  fp32 or amp-bf16 (fp32)`;
const text = { type: "string" } as const;
const { values } = readArguments(usage, {
  data: { ...text, default: "" },
  vocab: { ...text, default: "" },
  ranks: { ...text, default: "2" },
  layers: { ...text, default: "4" },
  width: { ...text, default: "256" },
  steps: { ...text, default: "12" },
  rounds: { ...text, default: "2" },
  precision: { ...text, default: "fp32" },
});
const { data, vocab } = values;
if (data === "" || vocab === "") refuse(usage, "--data and --vocab", "fewer");
const count = (option: "ranks" | "layers" | "width" | "steps" | "rounds") =>
  countOf(usage, option, values[option]);
const [ranks, layers, width, steps, rounds] = [
  count("ranks"),
  count("layers"),
  count("width"),
  count("steps"),
  count("rounds"),
];
const precision =
  values.precision === "fp32" || values.precision === "amp-bf16"
    ? values.precision
    : refuse(usage, "--precision fp32 or amp-bf16", values.precision);

const job = fileURLToPath(new URL("../src/job/rapidformer/jobs/finetune.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));

interface Measured {
  readonly tokensPerSecond: number;
  readonly losses: readonly number[];
}

async function train(shapes: { dynamicShapes?: boolean; packing?: boolean }): Promise<Measured> {
  await using runtime = await Runtime.spawn({
    ranks,
    zero: 1,
    precision,
    warmStandby: false,
    accumulation: 4 / ranks,
  });
  const [speeds, losses]: [number[], number[]] = [[], []];
  runtime.on("step.finished", ({ step, lossNats, tokensPerSecond = 0 }) => {
    losses[step - 1] = lossNats;
    // The first steps find their memory.
    if (step > 3) speeds.push(tokensPerSecond);
  });
  await runtime.run(job, {
    ...{ task: "sequence_classification", dataPath: data, pretrainedModelNameOrPath: folder },
    ...{ trainIters: steps, globalBatchSize: 64, lr: 1e-4, ...shapes },
  });
  return { tokensPerSecond: median(speeds), losses };
}

try {
  const sizes = {
    hidden_size: width,
    num_hidden_layers: layers,
    num_attention_heads: width / 64,
  };
  const dropout = { hidden_dropout_prob: 0, attention_probs_dropout_prob: 0 };
  const config = {
    model_type: "bert",
    ...sizes,
    intermediate_size: 4 * width,
    vocab_size: 30522,
    ...dropout,
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  copyFileSync(vocab, join(folder, "vocab.txt"));
  const ratios: Record<"dynamic" | "packed", number[]> = { dynamic: [], packed: [] };
  for (let round = 0; round < rounds; round++) {
    const fixed = await train({});
    for (const [name, shapes] of [
      ["dynamic", { dynamicShapes: true }],
      ["packed", { packing: true }],
    ] as const) {
      const { tokensPerSecond, losses } = await train(shapes);
      const apart = Math.max(
        ...fixed.losses.map((loss, index) => Math.abs(loss - (losses[index] ?? Number.NaN))),
      );
      const ratio = tokensPerSecond / fixed.tokensPerSecond;
      ratios[name].push(ratio);
      process.stdout.write(
        `fixed ${fixed.tokensPerSecond.toFixed(0)} tokens/s, ${name} ${tokensPerSecond.toFixed(0)}: ` +
          `${ratio.toFixed(2)} x; losses of ${fixed.losses.length} steps at most ${apart.toExponential(1)} apart\n`,
      );
    }
  }
  for (const [name, all] of Object.entries(ratios))
    process.stdout.write(`${name}: median ${median(all).toFixed(2)} x\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
