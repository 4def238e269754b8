import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Module, type TaskModel, type Tensor } from "troupe";
import { SafetensorsFile, saveHuggingFaceFolder } from "troupe/checkpoint";
import {
  type ModelOutputs,
  type NamedState,
  type StateNaming,
  type WeightBytes,
  weightBytes,
} from "troupe/models";
import { below, type TensorPlan } from "troupe/nn";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { tensor } from "../../src/compute/tensor/index.ts";
import { batchOf, declareGolden, type GoldenFolder, loadGolden, outputsOf, questionOf } from "./golden.ts";

/** The facts of a folder for a job. Plain data. */
export type GoldenModel = Pick<GoldenFolder, "name" | "path" | "base" | "adapter" | "task">;

/**
 * Several golden models side by side, `m0`, `m1`, …: none reads another's, so the gradient of the sum of their losses is each
 * one's own, and one run proves a layout for all of them.
 */
export class Together extends Module implements NamedState {
  readonly #models: readonly TaskModel[];

  constructor(models: readonly GoldenModel[]) {
    super();
    this.#models = models.map(declareGolden);
    for (const [index, model] of this.#models.entries()) Object.assign(this, { [keyOf(index)]: model });
  }

  /** @param batches - by model; those without labels are answered with outputs */
  override forward(batches: readonly Readonly<Record<string, Tensor>>[]): ModelOutputs[] {
    return this.#models.map((model, index) => model.forward(batches[index] ?? {}));
  }

  get tensorPlan(): TensorPlan {
    return Object.assign(
      {},
      ...this.#models.map(({ tensorPlan }, index) => below(keyOf(index), tensorPlan)),
    ) as TensorPlan;
  }

  get stateNaming(): StateNaming {
    return { prefix: "m0.", ignored: [] };
  }

  get configJson(): NamedState["configJson"] {
    return {};
  }
}

/** The name of a model among several. */
export function keyOf(index: number): string {
  return `m${index}`;
}

/** Writes one folder with the weights of several models, for `Together` to begin with. */
export async function joinFolders(path: string, models: readonly GoldenModel[]): Promise<void> {
  const weights: WeightBytes[] = [];
  const held: TaskModel[] = [];
  for (const [index, folder] of models.entries()) {
    const model = declareGolden(folder);
    materialize(model, { seed: 0 });
    await loadGolden(model, folder);
    for (const weight of weightBytes(model))
      weights.push({ ...weight, name: `${keyOf(index)}.${weight.name}` });
    held.push(model);
  }
  await saveHuggingFaceFolder(path, { config: {}, weights });
  for (const model of held) dematerialize(model);
}

function configIn({ base }: GoldenModel): GoldenFolder["config"] {
  return JSON.parse(readFileSync(join(base, "config.json"), "utf8"));
}

/** Numbers of a golden file, read once: a batch is made of them again for each request. */
export interface GoldenNumbers {
  /** By `input.*` and `output.*`. */
  readonly tensors: ReadonlyMap<
    string,
    { readonly shape: readonly number[]; readonly data: ArrayLike<number | bigint> }
  >;
  readonly config: GoldenFolder["config"];
}

/** Reads a folder's inputs and outputs. */
export async function readNumbers(model: GoldenModel): Promise<GoldenNumbers> {
  await using file = await SafetensorsFile.open(join(model.path, "golden.safetensors"));
  const tensors = new Map<string, { shape: readonly number[]; data: ArrayLike<number | bigint> }>();
  for (const { name, dtype, shape } of file.tensors.values()) {
    if (name.startsWith("grad.")) continue;
    const { buffer } = await file.read(name);
    tensors.set(name, {
      shape,
      data: dtype === "I64" ? new BigInt64Array(buffer) : new Float32Array(buffer),
    });
  }
  return { tensors, config: configIn(model) };
}

/** A batch with what is asked for, and one without. */
export function batchesOf(numbers: GoldenNumbers): {
  readonly asked: Record<string, Tensor>;
  readonly open: Record<string, Tensor>;
} {
  const asked = batchOf(stateOf(numbers));
  return { asked, open: questionOf(asked, numbers.config) };
}

/** All outputs in a row, by the names of their order; without the loss, which events tell. */
export function flatOutputs(outputs: Readonly<Record<string, Tensor>>, names: readonly string[]): Tensor[] {
  return names.map((name) => (outputs[name] as Tensor).to("float32").reshape([-1]));
}

/** Names of a folder's outputs but the loss, and their numbers. */
export function expectedOutputs(numbers: GoldenNumbers): Record<string, Tensor> {
  const { loss: _, ...outputs } = outputsOf(stateOf(numbers));
  return outputs;
}

function stateOf({ tensors }: GoldenNumbers): Map<string, Tensor> {
  return new Map(
    [...tensors].map(([name, { shape, data }]) => [name, tensor(data as Float32Array, { shape })] as const),
  );
}
