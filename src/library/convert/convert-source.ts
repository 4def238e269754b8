import type { Companions, JsonObject, TrainerState } from "../checkpoint/index.ts";
import type { LazyTensor } from "./lazy-tensor.ts";

/** Something that holds a model, opened; its tensors by their Hugging Face names. Owns files until `close`. */
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
  /** The model's config.json, where it is known. */
  readonly config: JsonObject | undefined;
  /** Its generation_config.json, where there is one. */
  readonly generationConfig?: JsonObject | undefined;
  /** Its tokenizer, and what else other programs read beside the weights. */
  readonly companions?: Companions | undefined;
  /** Training steps done; 0 where that is not known. */
  readonly step: number;
  /** Where the run stood, of a checkpoint of ours. */
  readonly state?: TrainerState;
  readonly tensors: ReadonlyMap<string, LazyTensor>;
  /** What an optimizer keeps; empty where that is not there, or in names that are not ours. */
  readonly optimizer: ReadonlyMap<string, LazyTensor>;
  close(): Promise<void>;
}
