import { Module, type TensorPlan, type VocabularyHead } from "../nn/index.ts";
import type { Tensor } from "../tensor/index.ts";
import {
  type CausalBatch,
  type LanguageModel,
  type Logits,
  type Loss,
  requestOf,
  type TextPlaces,
  type TextRequest,
  type TextTargets,
} from "./language-model.ts";
import type { ModelOutputs, TaskModel } from "./task-model.ts";
import { targetsOf } from "./token-ids.ts";
import type { NamedState, StateNaming } from "./weights.ts";

/** A causal stack with an output layer over its vocabulary: it predicts the next token. A family says which stack. */
export abstract class CausalLanguageModel extends Module implements LanguageModel, TaskModel {
  abstract readonly lm_head: VocabularyHead;

  /** Tokens it knows: ids lie below it. */
  abstract get vocabSize(): number;

  /** Longest context. */
  abstract get maxPositions(): number;

  /** How Hugging Face's files name these parameters. */
  abstract get stateNaming(): StateNaming;

  abstract get configJson(): NamedState["configJson"];

  abstract get tensorPlan(): TensorPlan;

  /** What the output layer reads: [B, T] → [B, T, D]. @throws {TroupeError} `MODEL_INPUT` */
  protected abstract states(inputIds: Tensor, places: TextPlaces): Tensor;

  override forward(inputIds: Tensor, asked: TextPlaces & TextTargets): Loss;
  override forward(inputIds: Tensor, options?: TextPlaces & { readonly logitsToKeep?: number }): Logits;
  override forward(batch: CausalBatch): ModelOutputs;
  /**
   * @param input - ids [B, T], int64, or a batch: ids, mask and labels in one record
   * @param asked.attentionMask, asked.segments, asked.positionIds - what stands where: {@link TextPlaces}
   * @param asked.labels - [B, T], int64, the inputs themselves: position t is asked for label t + 1
   * @param asked.targets - [B, T], int64, already shifted: position t is asked for target t; −100 counts for nothing
   * @param asked.logitsToKeep - of the last positions only; all unless told otherwise
   * @returns `loss` (float32 scalar, mean nats a token) where labels or targets are given, and then no logits, which
   *   never exist as a whole; else `logits` [B, kept, V]
   * @throws {TroupeError} `MODEL_INPUT`
   */
  override forward(input: Tensor | CausalBatch, asked?: TextRequest): Loss | Logits {
    const { inputIds, request } = requestOf(input, asked);
    const targets = targetsOf(this.constructor.name, inputIds, request);
    const hidden = this.states(inputIds, request); // [B, T, D]
    if (targets) return { loss: this.lm_head.forward(hidden, { targets }) };
    return { logits: this.lm_head.forward(hidden, { numPositions: request.logitsToKeep }) }; // [B, kept, V]
  }
}
