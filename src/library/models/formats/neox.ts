import type { WeightRow } from "./weight-map.ts";

/** A model as checkpoints of GPT-NeoX name it, `LAYER.NAME` by the layer of its pipeline. Every map lies there as with Hugging Face. */
export interface NeoXModel {
  readonly rows: readonly WeightRow[];
  /** Names there that are no parameters: frequencies, and masks of old checkpoints. */
  readonly ignored: RegExp;
}

/**
 * How GPT-NeoX names the model that a Hugging Face config.json describes.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export type NeoXForm = (config: Readonly<Record<string, unknown>>) => NeoXModel;
