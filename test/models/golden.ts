import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GPT2Config, WeightSource } from "../../src/models/index.ts";
import { type Tensor, tensor } from "../../src/tensor/index.ts";

/** A tiny model as Hugging Face's transformers wrote it, with what it computes. */
export interface Golden {
  readonly directory: string;
  readonly config: Partial<GPT2Config>;
  /** Entries `input.*`, `output.*` and `grad.*`. */
  readonly state: WeightSource;
  readonly weights: WeightSource;
  readonly recipe: {
    readonly adamw: { lr: number; betas: [number, number]; eps: number; weight_decay: number };
    readonly losses: readonly number[];
    readonly losses_clip_1: readonly number[];
    readonly grad_norms: readonly number[];
  };
}

/** The reference state of that name, or undefined where none lie beside the repository. */
export function openGolden(name: string): Golden | undefined {
  const directory = fileURLToPath(new URL(`../../../shared/golden/${name}`, import.meta.url));
  if (!existsSync(directory)) return undefined;
  const json = (file: string) => JSON.parse(readFileSync(join(directory, file), "utf8"));
  return {
    directory,
    config: json("config.json"),
    recipe: json("golden.json"),
    state: openSource(join(directory, "golden.safetensors")),
    weights: openSource(join(directory, "model.safetensors")),
  };
}

function openSource(path: string): WeightSource {
  const bytes = readFileSync(path);
  const headerSize = Number(bytes.readBigUInt64LE(0));
  const { __metadata__, ...header } = JSON.parse(bytes.toString("utf8", 8, 8 + headerSize));
  const entries: Map<string, { dtype: string; shape: number[]; data_offsets: [number, number] }> = new Map(
    Object.entries(header),
  );
  const read = (name: string): Tensor => {
    const entry = entries.get(name);
    if (!entry) throw new Error(`${path} has no ${name}`);
    const [begin, end] = entry.data_offsets.map((offset) => 8 + headerSize + offset);
    const data = new Uint8Array(bytes.subarray(begin, end)).buffer;
    return tensor(entry.dtype === "I64" ? new BigInt64Array(data) : new Float32Array(data), {
      shape: entry.shape,
    });
  };
  return { entries, read };
}
