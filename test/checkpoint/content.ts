import type { TensorSource } from "../../src/library/checkpoint/format/safetensors-writer.ts";
import type { CheckpointContent } from "../../src/library/checkpoint/saving/save-checkpoint.ts";

/** A checkpoint of a model with two parameters, whose numbers tell the step. */
export function contentOf(step: number, sizes: { numElements?: number } = {}): CheckpointContent {
  const { numElements = 6 } = sizes;
  const source = (name: string, value: number): TensorSource => ({
    name,
    dtype: "F32",
    shape: [numElements],
    read: () => new Uint8Array(new Float32Array(numElements).fill(value).buffer),
  });
  const names = ["wte.weight", "h.0.bias"];
  return {
    state: {
      step,
      seed: 1337,
      samplesConsumed: 12 * step,
      job: { layers: 4, text: "é\n" },
      tokenizer: { kind: "character", characters: "ab" },
    },
    config: { model_type: "gpt2", n_layer: 4 },
    weights: names.map((name) => source(name, step)),
    optimizer: names.flatMap((name) => [
      source(`exp_avg.${name}`, step / 2),
      source(`exp_avg_sq.${name}`, step / 4),
    ]),
  };
}
