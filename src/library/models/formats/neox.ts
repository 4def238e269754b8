import type { WeightRow } from "./weight-map.ts";

/** A model in GPT-NeoX's names, `LAYER.NAME` by the layer of its pipeline. Matrices are as in Hugging Face. */
export interface NeoXModel {
  readonly rows: readonly WeightRow[];
  /** Entries that are not parameters: frequencies, and masks of old checkpoints. */
  readonly ignored: RegExp;
}

/** Maps the model of a Hugging Face config.json to GPT-NeoX's names. @throws {TroupeError} `MODEL_CONFIG` */
export type NeoXForm = (config: Readonly<Record<string, unknown>>) => NeoXModel;
