import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HuggingFaceFolder, SafetensorsFile } from "../../src/checkpoint/index.ts";
import type { GPT2Config } from "../../src/models/index.ts";
import { keep, type Tensor, tensor } from "../../src/tensor/index.ts";
import { sharedPath } from "../fixtures/shared.ts";

/** A tiny model as Hugging Face's transformers wrote it, with what it computes. */
export interface Golden {
  readonly folder: HuggingFaceFolder;
  readonly config: Partial<GPT2Config>;
  /** `input.*`, `output.*` and `grad.*`, int64 or float32. */
  readonly state: ReadonlyMap<string, Tensor>;
  readonly recipe: {
    readonly adamw: { lr: number; betas: [number, number]; eps: number; weight_decay: number };
    readonly losses: readonly number[];
    readonly losses_clip_1: readonly number[];
    readonly grad_norms: readonly number[];
  };
}

/** Where the reference state of that name lies; undefined where there is none (see `sharedPath`). */
export function goldenPath(name: string): string | undefined {
  return sharedPath(`golden/${name}`);
}

/** Opens a reference state; the folder and the tensors are the caller's to release. */
export async function openGolden(path: string): Promise<Golden> {
  const folder = await HuggingFaceFolder.open(path);
  await using file = await SafetensorsFile.open(join(path, "golden.safetensors"));
  const state = new Map<string, Tensor>();
  for (const { name, dtype, shape } of file.tensors.values()) {
    const { buffer } = await file.read(name);
    const data = dtype === "I64" ? new BigInt64Array(buffer) : new Float32Array(buffer);
    state.set(name, keep(tensor(data, { shape })));
  }
  const recipe = JSON.parse(await readFile(join(path, "golden.json"), "utf8"));
  return { folder, config: folder.config as Partial<GPT2Config>, state, recipe };
}
