import { Dropout, LayerNorm, type Linear, Module, type Parameter } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { numLabels } from "../config-fields.ts";
import { linear } from "../encoder-parts.ts";
import { type HeadConfig, WordHead } from "../text-encoder/index.ts";

/** RoBERTa's head for masked words. */
export class RobertaLMHead extends WordHead {
  readonly dense: Linear;
  readonly layer_norm: LayerNorm;

  /** @param embedding - of words; the output layer is tied to it */
  constructor(config: HeadConfig, embedding: Parameter) {
    const { hidden_size: width, layer_norm_eps } = config;
    super(config, width, embedding);
    this.dense = linear(width, width, config, { activation: "gelu" });
    this.layer_norm = new LayerNorm(width, layer_norm_eps);
  }

  protected override features(hidden: Tensor): Tensor {
    return this.layer_norm.forward(this.dense.forward(hidden)); // [B, T, D]
  }
}

/** RoBERTa's classifier of rows, with its own layer instead of a pooler. */
export class RobertaClassificationHead extends Module {
  readonly dense: Linear;
  readonly dropout: Dropout;
  readonly out_proj: Linear;

  constructor(config: HeadConfig, dropout: number) {
    super();
    const { hidden_size: width } = config;
    this.dense = linear(width, width, config, { activation: "tanh" });
    this.dropout = new Dropout(dropout);
    this.out_proj = linear(width, numLabels(config), config);
  }

  /** @param first - [B, D] @returns [B, C] */
  override forward(first: Tensor): Tensor {
    const features = this.dense.forward(this.dropout.forward(first)); // [B, D]
    return this.out_proj.forward(this.dropout.forward(features));
  }
}
