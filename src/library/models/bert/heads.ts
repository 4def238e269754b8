import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { linear } from "../encoder-parts.ts";
import { type HeadConfig, WordHead } from "../text-encoder/index.ts";

type WordHeadConfig = HeadConfig & { readonly hidden_act: nn.ActivationName };

class Transform extends nn.Module {
  readonly dense: nn.Linear;
  readonly LayerNorm: nn.LayerNorm;

  constructor(config: WordHeadConfig) {
    super();
    const { hidden_size: width, hidden_act: activation } = config;
    this.dense = linear(width, width, config, { activation });
    this.LayerNorm = new nn.LayerNorm(width, config.layer_norm_eps);
  }

  override forward(hidden: Tensor): Tensor {
    return this.LayerNorm.forward(this.dense.forward(hidden)); // [B, T, D]
  }
}

class Predictions extends WordHead {
  readonly transform: Transform;

  constructor(config: WordHeadConfig, embedding: nn.Parameter) {
    super(config, config.hidden_size, embedding);
    this.transform = new Transform(config);
  }

  protected override features(hidden: Tensor): Tensor {
    return this.transform.forward(hidden);
  }
}

/** BERT's head for masked words. */
export class MaskedWords extends nn.Module {
  readonly predictions: Predictions;

  /** @param embedding - of words; the output layer is tied to it */
  constructor(config: WordHeadConfig, embedding: nn.Parameter) {
    super();
    this.predictions = new Predictions(config, embedding);
  }

  /** @returns the loss if there are labels [B, T], else logits [B, T, V] */
  override forward(hidden: Tensor, labels: Tensor | undefined): Tensor {
    return this.predictions.forward(hidden, labels);
  }
}

/** Heads for masked words, and for whether the second text follows the first. */
export class PretrainingHeads extends MaskedWords {
  readonly seq_relationship: nn.Linear;

  constructor(config: WordHeadConfig, embedding: nn.Parameter) {
    super(config, embedding);
    this.seq_relationship = linear(config.hidden_size, 2, config);
  }
}
