// Runs ONNX files by onnxruntime, and the same model here.
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { materialize } from "../../src/compute/nn/index.ts";
import { noGrad, scope, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { HuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import {
  autoModel,
  configOfFile,
  hasModel,
  loadWeights,
  type Task,
  type TaskModel,
  taskOf,
} from "../../src/library/models/index.ts";
import { loadOnnxRuntime, type Session } from "./onnx-runtime.ts";

const { InferenceSession, Tensor: OnnxTensor } = loadOnnxRuntime();

/** Numbers of an input, with its sizes. */
export interface Given {
  readonly values: readonly number[];
  readonly shape: readonly number[];
}

/** Float values of outputs, by name. */
export type Outputs = Readonly<Record<string, Given>>;

/** The model of a Hugging Face folder, with its weights, in evaluation mode. */
export async function modelOf(folder: string): Promise<{ model: TaskModel; task: Task }> {
  const config = JSON.parse(await readFile(join(folder, "config.json"), "utf8"));
  const task = taskOf(config) ?? "image_text";
  if (!hasModel(task, config)) throw new Error(`no task of ${basename(folder)}`);
  const model = autoModel(task, configOfFile(config));
  await using opened = await HuggingFaceFolder.open(folder);
  materialize(model, { seed: 0 });
  await loadWeights(model, opened);
  model.eval();
  return { model, task };
}

/** A session of a file. Inputs that are not given are a past without positions, or false. */
export class OnnxModel {
  readonly #session: Session;

  private constructor(session: Session) {
    this.#session = session;
  }

  static async open(path: string): Promise<OnnxModel> {
    return new OnnxModel(await InferenceSession.create(path, { logSeverityLevel: 3 }));
  }

  async run(given: Readonly<Record<string, Given>>): Promise<Outputs> {
    const batch = Object.values(given)[0]?.shape[0] ?? 1;
    const feeds = this.#session.inputMetadata.map((input) => {
      if (!input.isTensor) throw new Error(`${input.name} is no tensor`);
      const shape = input.shape.map((size) =>
        typeof size === "number" ? size : size === "batch_size" ? batch : 0,
      );
      const values = input.type === "bool" ? [0] : [];
      const { values: own, shape: ownShape } = given[input.name] ?? { values, shape };
      return [input.name, new OnnxTensor(input.type, arrayOf(input.type, own), ownShape)];
    });
    const made = await this.#session.run(Object.fromEntries(feeds));
    return Object.fromEntries(
      Object.entries(made).map(([name, { dims, type, data }]) => [
        name,
        {
          shape: dims,
          values:
            type === "float16" ? floatsOf(data as Uint16Array) : Array.from(data as Float32Array, Number),
        },
      ]),
    );
  }
}

function arrayOf(type: string, values: readonly number[]) {
  if (type === "int64") return BigInt64Array.from(values, BigInt);
  if (type === "bool") return Uint8Array.from(values);
  if (type === "float16") {
    return scope(() =>
      tensor([...values])
        .to("float16")
        .toTypedArray(),
    ) as Uint16Array;
  }
  return Float32Array.from(values);
}

function floatsOf({ buffer, byteOffset, length }: Uint16Array): number[] {
  const bits = new Uint16Array(buffer, byteOffset, length);
  return scope(() => [...(tensor(bits, { dtype: "float16" }).to("float32").toTypedArray() as Float32Array)]);
}

/** A tensor of a given input: integers for names of ids and masks. */
export function asTensor({ values, shape }: Given, dtype: "int64" | "float32"): Tensor {
  return values.length === 0 ? zeros(shape, { dtype }) : tensor([...values], { shape, dtype });
}

/** The largest difference of an output from a tensor. */
export function difference({ values, shape }: Given, of: Tensor): number {
  if (shape.join() !== of.shape.join()) throw new Error(`[${shape}] is not [${of.shape}]`);
  const others = scope(() => of.to("float32").contiguous().toTypedArray()) as Float32Array;
  return others.reduce(
    (worst, other, place) => Math.max(worst, Math.abs(other - (values[place] ?? Number.NaN))),
    0,
  );
}

/** A batch with other sizes than those that are recorded: rows of unequal length, padded on the right. */
export function batchOf(model: TaskModel, names: readonly string[]): Record<string, Given> {
  const [rows, length] = [3, 14];
  const { configJson } = model;
  const vision = (configJson.vision_config ?? configJson) as Readonly<Record<string, number>>;
  const words = Number(
    (configJson.text_config as { vocab_size?: number } | undefined)?.vocab_size ?? configJson.vocab_size ?? 2,
  );
  const picture = [rows, vision.num_channels ?? 3, Number(vision.image_size), Number(vision.image_size)];
  const numbers = (shape: readonly number[], at: (place: number) => number): Given => ({
    shape,
    values: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, place) => at(place)),
  });
  const text = [rows, length];
  // Ids from 4 on: small ones are padding and ends.
  const ids = (shape: readonly number[]) => numbers(shape, (place) => 4 + ((place * 31 + 7) % (words - 4)));
  const mask = numbers(text, (place) => Number(place % length < length - 2 * Math.floor(place / length)));
  const all: Readonly<Record<string, Given>> = {
    input_ids: ids(text),
    attention_mask: mask,
    encoder_attention_mask: mask,
    token_type_ids: numbers(text, (place) => Number(place % length > 6)),
    decoder_input_ids: ids([rows, 5]),
    pixel_values: numbers(picture, (place) => Math.sin(place * 0.7)),
    input_values: numbers([rows, 6007], (place) => Math.sin(place * 0.3)),
  };
  return Object.fromEntries(names.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));
}

/** A name in the style of JavaScript. */
export const camel = (name: string) =>
  name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Outputs of our own. */
export function ours(model: TaskModel, batch: Readonly<Record<string, Given>>): Record<string, Tensor> {
  const inputs = Object.entries(batch).map(([name, given]) => [
    camel(name),
    asTensor(given, /_values$/.test(name) ? "float32" : "int64"),
  ]);
  return noGrad(() => model.forward(Object.fromEntries(inputs)));
}

/** Names of a task's inputs. */
export const inputsOf = (task: string): string[] => {
  if (task === "seq2seq_lm") return ["input_ids", "attention_mask", "decoder_input_ids"];
  if (task === "image_classification") return ["pixel_values"];
  if (task === "image_text") return ["input_ids", "attention_mask", "pixel_values"];
  if (task === "speech_recognition" || task === "audio_classification") return ["input_values"];
  return ["input_ids", "attention_mask", "token_type_ids"];
};
