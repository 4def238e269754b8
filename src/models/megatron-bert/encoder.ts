import { LayerNorm, Module, ModuleList, type PackedRow } from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import { BertModel, EncoderEmbeddings, type EncoderLayers } from "../bert/encoder.ts";
import { EncoderIntermediate, EncoderSelfAttention, PlainOutput } from "../encoder-parts.ts";
import type { MegatronBertConfig } from "./config.ts";

// B batch, T positions, D width, I inner width.

class MegatronBertAttention extends Module {
  readonly ln: LayerNorm;
  readonly self: EncoderSelfAttention;
  readonly output: PlainOutput;

  constructor(config: MegatronBertConfig) {
    super();
    this.ln = new LayerNorm(config.hidden_size, config.layer_norm_eps);
    this.self = new EncoderSelfAttention(config);
    this.output = new PlainOutput(config.hidden_size, config);
  }

  override forward(x: Tensor, mask: Tensor | PackedRow | undefined): Tensor {
    return this.output.forward(this.self.forward(this.ln.forward(x), mask)); // [B, T, D]
  }
}

/** One layer: attention and feed-forward, each behind a norm and added to the residual stream. */
class MegatronBertLayer extends Module {
  readonly attention: MegatronBertAttention;
  readonly ln: LayerNorm;
  readonly intermediate: EncoderIntermediate;
  readonly output: PlainOutput;

  constructor(config: MegatronBertConfig) {
    super();
    const { hidden_size, intermediate_size, layer_norm_eps } = config;
    this.attention = new MegatronBertAttention(config);
    this.ln = new LayerNorm(hidden_size, layer_norm_eps);
    this.intermediate = new EncoderIntermediate(config);
    this.output = new PlainOutput(intermediate_size, config);
  }

  override forward(x: Tensor, mask?: Tensor | PackedRow): Tensor {
    const attended = this.attention.forward(x, mask); // [B, T, D]
    const [sum, normed] = this.ln.addThenNorm(attended, x);
    return sum.add(this.output.forward(this.intermediate.forward(normed)));
  }
}

class MegatronBertEncoder extends Module implements EncoderLayers {
  readonly layer: ModuleList<MegatronBertLayer>;
  readonly ln: LayerNorm;

  constructor(config: MegatronBertConfig) {
    super();
    this.layer = new ModuleList(
      Array.from({ length: config.num_hidden_layers }, () => new MegatronBertLayer(config)),
    );
    this.ln = new LayerNorm(config.hidden_size, config.layer_norm_eps);
  }

  override forward(x: Tensor, mask: Tensor | PackedRow | undefined): Tensor {
    let hidden = x;
    for (const layer of this.layer) hidden = layer.forward(hidden, mask);
    return this.ln.forward(hidden); // [B, T, D]
  }
}

/**
 * Megatron-LM's BERT, whose norms stand before the halves of a layer, without a head.
 * @see Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053, section 5.3
 */
export function megatronBertModel(config: MegatronBertConfig, pooled: boolean): BertModel {
  return new BertModel(config, {
    pooled,
    parts: {
      embeddings: new EncoderEmbeddings(config, config.hidden_size),
      encoder: new MegatronBertEncoder(config),
    },
  });
}
