import { ops, type Tensor } from "../../tensor/index.ts";
import { linearCrossEntropy } from "../losses/loss.ts";
import type { LossOptions } from "../losses/weighed-rows.ts";
import { type Initializer, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { Parameter } from "../module/parameter.ts";

/** Options of a call of {@link VocabularyHead}. */
export interface HeadRequest {
  /** [B, T], int64, each in [0, V) or −100, which is ignored. With targets the head returns the loss instead of logits. */
  readonly targets?: Tensor;
  /** Options of the loss. Default: the plain mean. */
  readonly loss?: LossOptions & { readonly reduction?: "mean" | "sum" };
  /** float [V], added to the logits: a constant, without a gradient. */
  readonly offsets?: Tensor | undefined;
  /** Computes logits of this many last positions only. Default: all. */
  readonly numPositions?: number | undefined;
}

/**
 * The output layer of a language model, from hidden states to a loss or to logits. If only the loss is needed, the logits
 * never exist all at once. Weight [V, D].
 */
export class VocabularyHead extends Module {
  /** Assign the token embedding's weight to tie the two. */
  weight: Parameter;
  /** [V]; null if there is none. Another module's may be assigned. */
  bias: Parameter | null;

  /** @param options.bias - whether a bias is added, initialized with zeros. Default: false. */
  constructor(width: number, numWords: number, init: Initializer, options: { readonly bias?: boolean } = {}) {
    super();
    this.weight = new Parameter([numWords, width], init);
    this.bias = options.bias === true ? new Parameter([numWords], zeros) : null;
  }

  /**
   * @param hidden - [B, T, D]
   * @returns with targets the cross entropy, a float32 scalar in nats; otherwise logits [B, kept, V]
   */
  override forward(hidden: Tensor, request: HeadRequest = {}): Tensor {
    const { targets, loss, offsets, numPositions } = request;
    const bias = addedTo(this.bias?.tensor, offsets);
    if (targets !== undefined)
      return linearCrossEntropy(hidden, this.weight.tensor, targets, { ...loss, bias });
    return ops.linear(lastPositions(hidden, numPositions), this.weight.tensor, bias);
  }
}

/** Returns the sum of bias and offsets, either of which may be missing. */
export function addedTo(bias: Tensor | undefined, offsets: Tensor | undefined): Tensor | undefined {
  if (bias === undefined || offsets === undefined) return bias ?? offsets?.detach();
  return bias.add(offsets.detach().to(bias.dtype));
}

/** Returns the last `count` positions of [B, T, D]; all if undefined. */
export function lastPositions(hidden: Tensor, count: number | undefined): Tensor {
  const length = hidden.shape[1] ?? 0;
  const kept = Math.min(count ?? length, length);
  return hidden.narrow(1, length - kept, kept);
}
