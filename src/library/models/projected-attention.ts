import * as nn from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { column, row } from "./uneven.ts";

/** Source of keys and values, and mask of an attention. */
export interface AttentionRequest {
  /** [B, S, D]; null where its keys and values are kept. Default: the queries' own positions. */
  readonly source?: Tensor | null | undefined;
  /** bool, true where a key may be attended to; broadcasts to [B, H, T, S]. Or the packed texts. */
  readonly mask?: Tensor | nn.PackedRow | undefined;
  readonly causal?: boolean;
}

/** Attention with input and output maps, by the names in BART, OPT, CLIP and wav2vec 2. */
export class ProjectedAttention extends nn.Module {
  readonly k_proj: nn.Linear;
  readonly v_proj: nn.Linear;
  readonly q_proj: nn.Linear;
  readonly out_proj: nn.Linear;
  readonly dropout: nn.Dropout;
  readonly headWidth: number;

  constructor(
    width: number,
    numHeads: number,
    options: { readonly dropout: number; readonly init: nn.Initializer; readonly bias?: boolean },
  ) {
    super();
    const { init, bias = true } = options;
    const map = () => new nn.Linear(width, width, { init, bias, biasInit: nn.zeros });
    this.headWidth = width / numHeads;
    this.k_proj = map();
    this.v_proj = map();
    this.q_proj = map();
    this.out_proj = map();
    this.dropout = new nn.Dropout(options.dropout);
  }

  /** @param x - [B, T, D] @returns [B, T, D] */
  override forward(x: Tensor, { source = x, mask: seen, causal = false }: AttentionRequest = {}): Tensor {
    const q = nn.splitHeads(this.q_proj.forward(x), this.headWidth); // [B, H, T, K]
    const makeKeys = () =>
      [this.k_proj, this.v_proj].map((map) =>
        nn.splitHeads(map.forward(source as Tensor), this.headWidth),
      ) as [keys: Tensor, values: Tensor];
    const options = { ...nn.seenBy(seen), dropout: this.dropout };
    const attend = () =>
      causal ? nn.selfAttention(this, q, ...makeKeys(), options) : nn.attention(q, ...makeKeys(), options);
    const mixed = source === x ? attend() : nn.crossAttention(this, q, makeKeys, options); // [B, H, T, K]
    return this.out_proj.forward(nn.joinHeads(mixed));
  }
}

/**
 * The tensor-parallel plan of a {@link ProjectedAttention}: split by heads.
 * @param width - of all heads together
 * @param source - the part of the keys' and values' positions that each rank has. Default: that of the queries'
 */
export function attentionPlan(width: number, numHeads: number, source?: "replicated"): nn.TensorPlan {
  const unit = width / numHeads;
  const keys = column({ unit, input: source });
  return {
    q_proj: column({ unit }),
    k_proj: keys,
    v_proj: keys,
    dropout: nn.mask(1, numHeads), // [B, H, T, S]
    out_proj: row({ unit }),
  };
}
