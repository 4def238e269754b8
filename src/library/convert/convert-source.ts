import type { Companions, JsonObject, TrainerState } from "../checkpoint/index.ts";
import type { LazyTensor } from "./lazy-tensor.ts";

/** An opened model, with Hugging Face's names of tensors. Owns files until `close`. */
export interface ConvertSource {
  readonly kind:
    | "troupe"
    | "hugging-face"
    | "megatron"
    | "gpt-neox"
    | "fairseq"
    | "model-center"
    | "safetensors"
    | "torch";
  readonly path: string;
  /** The model's config.json, if known. */
  readonly config: JsonObject | undefined;
  /** Its generation_config.json, if any. */
  readonly generationConfig?: JsonObject | undefined;
  /** Its tokenizer, and other files that programs read beside the weights. */
  readonly companions?: Companions | undefined;
  /** Training steps done; 0 if unknown. */
  readonly step: number;
  /** The run's state, for a Troupe checkpoint. */
  readonly state?: TrainerState;
  readonly tensors: ReadonlyMap<string, LazyTensor>;
  /** Optimizer state; empty if missing or in another program's names. */
  readonly optimizer: ReadonlyMap<string, LazyTensor>;
  close(): Promise<void>;
}
