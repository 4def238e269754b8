import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type CaseName, cases, type LearningCase, openCase } from "../../bench/learning/cases.ts";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { noGrad, ops, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { Runtime } from "../../src/entries/index.ts";
import { taskModel } from "../../src/job/tasks/index.ts";
import { saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import type { Rows, TensorBatch } from "../../src/library/data/index.ts";
import { exportModel } from "../../src/library/export/index.ts";
import { type TaskModel, weightBytes } from "../../src/library/models/index.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { asTensor, camel, type Given, modelOf, OnnxModel } from "./onnx-model.ts";

const data = sharedPath("data");
const scratch = mkdtempSync(join(tmpdir(), "troupe-judged-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Steps after which a case's score is well away from chance, and the score. */
const judged = {
  wav2vec2: { steps: 700, score: "wordErrorRate" },
  vit: { steps: 250, score: "accuracy" },
  tags: { steps: 50, score: "accuracy" },
} as const satisfies Partial<Record<CaseName, object>>;

/** Files in the format of MNIST: the class of a picture is the place of a blot on a circle. */
function drawBlots(folder: string): void {
  mkdirSync(folder);
  for (const [name, count] of Object.entries({ train: 2_000, t10k: 200 })) {
    const pixels = Buffer.alloc(count * 28 * 28);
    const labels = Buffer.from(Array.from({ length: count }, (_, index) => (index * 7) % 10));
    let state = count;
    for (const [at] of pixels.entries()) {
      const [index, place] = [Math.floor(at / 784), at % 784];
      const angle = (2 * Math.PI * (labels[index] as number)) / 10;
      const [x, y] = [14 + 9 * Math.cos(angle), 14 + 9 * Math.sin(angle)];
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const distance = Math.hypot((place % 28) - x, Math.floor(place / 28) - y);
      pixels[at] = Math.min(255, (state >>> 24) / 8 + 200 * Math.exp(-(distance ** 2) / 12));
    }
    const head = (...numbers: readonly number[]) => {
      const bytes = Buffer.alloc(4 * numbers.length);
      for (const [at, number] of numbers.entries()) bytes.writeUInt32BE(number, 4 * at);
      return bytes;
    };
    writeFileSync(
      join(folder, `${name}-images-idx3-ubyte`),
      Buffer.concat([head(0x803, count, 28, 28), pixels]),
    );
    writeFileSync(join(folder, `${name}-labels-idx1-ubyte`), Buffer.concat([head(0x801, count), labels]));
  }
}

/** Trains a case for some steps. @returns the folder of its checkpoint */
async function trained(name: keyof typeof judged, root: string): Promise<string> {
  const { task, examples, tokenizer } = await openCase(name, root, false);
  const { config, length }: LearningCase = cases[name];
  const { facts } = task.dataset(examples, { source: name, config, tokenizer, length, seed: 1 });
  const [start, dir] = [join(scratch, `${name}-start`), join(scratch, `${name}-run`)];
  const model = taskModel(task, config, facts);
  materialize(model, { seed: 1 });
  await saveHuggingFaceFolder(start, { config: model.configJson, weights: weightBytes(model) });
  dematerialize(model);
  const { steps } = judged[name];
  await using runtime = await Runtime.spawn({ ranks: 1, checkpoint: { dir, everySteps: steps } });
  const job = new URL("../../bench/learning/job.ts", import.meta.url);
  await runtime.run(job, { case: name, root, folder: start, steps, evaluate: 0 });
  return join(dir, readdirSync(dir).find((each) => each.startsWith("step-")) ?? "");
}

/** A tensor's numbers, for another program. */
function givenOf(values: Tensor): Given {
  const numbers = scope(() => Array.from(values.contiguous().toTypedArray() as Float32Array, Number));
  return { values: numbers, shape: values.shape };
}

/** A model that answers with what another program has computed. */
async function standIn(file: OnnxModel, batch: TensorBatch, { configJson }: TaskModel): Promise<TaskModel> {
  const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const given = Object.entries(batch).flatMap(([name, value]) =>
    name === "labels" ? [] : [[snake(name), givenOf(value as Tensor)] as const],
  );
  const ids = batch.inputIds as Tensor | undefined;
  const types = ids && { token_type_ids: { values: Array<number>(ids.numel).fill(0), shape: ids.shape } };
  const made = await file.run({ ...types, ...Object.fromEntries(given) });
  const outputs = Object.entries(made).map(([name, value]) => [camel(name), asTensor(value, "float32")]);
  return { configJson, forward: () => Object.fromEntries(outputs) } as unknown as TaskModel;
}

describe.skipIf(data === undefined)(
  "an export is judged as the model is, on data that neither has seen",
  () => {
    const root = join(scratch, "data");
    mkdirSync(root);
    for (const name of ["vocab", "fsdd", "ewt"]) symlinkSync(join(data ?? "", name), join(root, name));
    drawBlots(join(root, "mnist"));

    it.each(Object.keys(judged) as (keyof typeof judged)[])("by %s", async (name) => {
      const checkpoint = await trained(name, root);
      const target = join(scratch, `${name}-onnx`);
      await exportModel(checkpoint, target, { to: "onnx", types: ["fp32", "fp16", "int8"] });
      const { model } = await modelOf(checkpoint);
      const { task, examples, tokenizer } = await openCase(name, root, false);
      const { config, length }: LearningCase = cases[name];
      const heldOut = { ...examples, validation: examples.validation?.slice(0, 400) ?? [] };
      const dataset = task.dataset(heldOut, { source: name, config, tokenizer, length, seed: 1 });
      const files = await Promise.all(
        ["", "_fp16", "_quantized"].map((ending) =>
          OnnxModel.open(join(target, "onnx", `model${ending}.onnx`)),
        ),
      );
      const rows: Rows[][] = [[], [], [], []];
      const numSamples = heldOut.validation.length;
      for (let position = 0; position < numSamples; position += 40) {
        const size = Math.min(40, numSamples - position);
        const made = (await dataset.batch("validation", position, size)) as TensorBatch;
        // Recordings are heard to the end of their row: the file has no input for their lengths.
        const batch =
          name === "wav2vec2" ? { ...made, attentionMask: ops.onesLike(made.attentionMask as Tensor) } : made;
        const models = [model, ...(await Promise.all(files.map((file) => standIn(file, batch, model))))];
        for (const [at, each] of models.entries())
          rows[at]?.push(noGrad(() => task.predict(each, batch as never)));
      }
      const { score } = judged[name];
      const scores = await Promise.all(
        rows.map(async (all): Promise<Readonly<Record<string, number>>> => {
          const partsOf = (key: string) => all.map((each) => each[key] as Tensor);
          const joined = Object.keys(all[0] ?? {}).map((key) => [key, ops.cat(partsOf(key), 0)]);
          return (await dataset.score?.("validation", Object.fromEntries(joined))) ?? {};
        }),
      );
      const [own, float, half, int8] = scores.map((each) => each[score]) as [number, number, number, number];
      process.stdout.write(
        `${name}: ${score} ${own.toFixed(4)}, of the export ${float.toFixed(4)}; float16 ${half.toFixed(4)}, int8 ${int8.toFixed(4)}; ${numSamples} samples\n`,
      );
      expect(scores[1]).toEqual(scores[0]);
      expect(Math.abs(half - own)).toBeLessThan(0.01);
      expect(Math.abs(int8 - own)).toBeLessThan(0.05);
      // Learnt, so that it could differ.
      if (name === "wav2vec2") expect(own).toBeLessThan(0.8);
      else expect(own).toBeGreaterThan(0.4);
      dematerialize(model);
    });
  },
);
