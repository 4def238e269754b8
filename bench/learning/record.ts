import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { keep, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { type TaskFacts, taskModel } from "../../src/job/tasks/index.ts";
import {
  SafetensorsFile,
  saveHuggingFaceFolder,
  writeSafetensors,
} from "../../src/library/checkpoint/index.ts";
import { type Batch, type Dataset, disposeBatch, type Rows } from "../../src/library/data/index.ts";
import { weightBytes } from "../../src/library/models/index.ts";
import type { OpenCase } from "./cases.ts";
import { nudged } from "./nudge.ts";

/** A case's task and data. */
interface Opened {
  readonly task: OpenCase["task"];
  readonly dataset: Dataset<Batch, TaskFacts>;
}

/**
 * Writes the model that both sides begin with, in place of one that lies there.
 * @param start - which of the starts that differ by roundings: see `nudged`
 */
export async function recordWeights(
  folder: string,
  { task, dataset }: Opened,
  {
    config,
    seed,
    start,
  }: { readonly config: Readonly<Record<string, unknown>>; readonly seed: number; readonly start: number },
): Promise<void> {
  const model = taskModel(task, config, dataset.facts);
  materialize(model, { seed });
  // The labels' number is in the folder: the same head for both.
  await saveHuggingFaceFolder(folder, {
    config: model.configJson,
    weights: nudged(weightBytes(model), start),
  });
  dematerialize(model);
}

/**
 * Writes what both sides read: `train.safetensors` with the batches in the order in which they are read, `rates.json` with the
 * learning rate of each step, and `validation.safetensors`.
 */
export async function recordRows(
  folder: string,
  { dataset }: Opened,
  { numRows, rates }: { readonly numRows: number; readonly rates: readonly number[] },
): Promise<void> {
  await writeFile(join(folder, "rates.json"), JSON.stringify(rates));
  await writeRows(join(folder, "train.safetensors"), dataset, "train", numRows);
  await writeRows(
    join(folder, "validation.safetensors"),
    dataset,
    "validation",
    dataset.splits.validation?.numSamples ?? 0,
  );
}

/** Reads the peer's predictions of the held-out rows. The caller's to dispose. */
export async function readPredicted(folder: string): Promise<Rows> {
  await using file = await SafetensorsFile.open(join(folder, "predicted.safetensors"));
  const rows: Record<string, Tensor> = {};
  for (const { name, dtype, shape } of file.tensors.values()) {
    const { buffer } = await file.read(name);
    const data = dtype === "I64" ? new BigInt64Array(buffer) : new Float32Array(buffer);
    rows[name] = keep(tensor(data, { shape }));
  }
  return rows;
}

/** Rows at a time. */
const STEP = 64;

async function writeRows(
  path: string,
  dataset: Dataset<Batch, TaskFacts>,
  split: string,
  numRows: number,
): Promise<void> {
  const parts = new Map<
    string,
    { readonly shape: readonly number[]; readonly dtype: "I64" | "F32"; readonly bytes: Uint8Array[] }
  >();
  for (let position = 0; position < numRows; position += STEP) {
    const batch = (await dataset.batch(split, position, Math.min(STEP, numRows - position))) as Readonly<
      Record<string, Tensor>
    >;
    for (const [name, values] of Object.entries(batch)) {
      const { buffer, byteOffset, byteLength } = values.toTypedArray();
      const part = parts.get(name) ?? {
        shape: values.shape.slice(1),
        dtype: values.dtype === "int64" ? "I64" : "F32",
        bytes: [],
      };
      part.bytes.push(new Uint8Array(buffer, byteOffset, byteLength).slice());
      parts.set(name, part);
    }
    disposeBatch(batch);
  }
  await rm(path, { force: true });
  await writeSafetensors(
    path,
    [...parts].map(([name, { shape, dtype, bytes }]) => ({
      name,
      dtype,
      shape: [numRows, ...shape],
      read: () => bytes,
    })),
  );
}
