import { Drawing, Linear, normal, Parameter, uniform, zeros } from "../../../compute/nn/index.ts";
import { type Device, ops, type Tensor } from "../../../compute/tensor/index.ts";
import type { Wav2Vec2Config } from "./config.ts";

// B recordings, T frames, F width of frames, G codebooks of V codes each, C width of a frame's codes together.

/** Frames quantized to codes. */
export interface Quantized {
  /** [B, T, C], vectors of the codes. */
  readonly vectors: Tensor;
  /** int64 [B, T], a number for the combination of codes of all codebooks. */
  readonly codes: Tensor;
  /** float32 scalar: perplexity of the masked frames' codes, summed over the codebooks; at most G · V. */
  readonly perplexity: Tensor;
}

/**
 * Assigns each frame a code of each codebook. In training codes are sampled with Gumbel noise, and gradients are those of the
 * probabilities (straight-through); in evaluation the likeliest is taken, without gradients to the frames.
 * @see Jang et al. 2017, https://arxiv.org/abs/1611.01144; Baevski et al. 2020 §2, https://arxiv.org/abs/2006.11477
 */
export class GumbelQuantizer extends Drawing {
  /** [1, G · V, C / G]. */
  readonly codevectors: Parameter;
  readonly weight_proj: Linear;
  /** Temperature of sampling, above 0: higher means further from the likeliest codes. A job may lower it during training. */
  temperature = 2;
  readonly #numGroups: number;
  readonly #numCodes: number;

  constructor(config: Wav2Vec2Config) {
    super();
    const { num_codevector_groups: groups, num_codevectors_per_group: codes, codevector_dim } = config;
    this.#numGroups = groups;
    this.#numCodes = codes;
    this.codevectors = new Parameter([1, groups * codes, codevector_dim / groups], uniform(0, 1));
    this.weight_proj = new Linear(config.conv_dim.at(-1) ?? 0, groups * codes, {
      init: normal(0, 1),
      biasInit: zeros,
    });
  }

  /**
   * @param frames - [B, T, F]
   * @param masked - bool [B, T], frames for the perplexity; default all
   * @throws {TroupeError} `RANDOMNESS_UNBOUND` in training without bound randomness
   */
  override forward(frames: Tensor, masked: Tensor | undefined): Quantized {
    const [batch = 0, length = 0] = frames.shape;
    const [groups, numCodes] = [this.#numGroups, this.#numCodes];
    const logits = this.weight_proj.forward(frames).to("float32").view([-1, groups, numCodes]); // [B · T, G, V]
    const isDrawn = this.training && frames.device !== "meta";
    const scores = isDrawn ? logits.add(this.#noise(logits)).div(this.temperature) : logits;
    const chosen = scores.detach().argmax(-1); // [B · T, G]
    const hard = ops.oneHot(chosen, numCodes).to("float32");
    const soft = this.training ? scores.softmax(-1) : undefined;
    const shares = soft === undefined ? hard : hard.sub(soft.detach()).add(soft); // value of `hard`, gradient of `soft`
    const table = this.codevectors.tensor.view([groups, numCodes, -1]);
    const vectors = shares.to(table.dtype).transpose(0, 1).matmul(table); // [G, B · T, C / G]
    return {
      vectors: vectors.transpose(0, 1).reshape([batch, length, -1]),
      codes: numbered(chosen, numCodes).view([batch, length]),
      perplexity: perplexityOf(this.training ? logits.softmax(-1) : hard, masked),
    };
  }

  /** Gumbel noise. A float32 draw may be 0, which has no logarithm. */
  #noise(logits: Tensor): Tensor {
    const drawn = this.uniform(logits.shape, logits.device as Device).clamp(2 ** -24);
    return drawn.log().neg().log().neg();
  }
}

/** int64 [N, G], each below `base` → [N]. */
function numbered(chosen: Tensor, base: number): Tensor {
  return chosen.unbind(1).reduce((sum, code) => sum.mul(base).add(code));
}

/** Added before the logarithm so that a share of 0 contributes 0; too small to change others. */
const SMALLEST = 1e-30;

/** @param shares - [N, G, V], of N frames @param masked - bool [B, T], N frames in all */
function perplexityOf(shares: Tensor, masked: Tensor | undefined): Tensor {
  const means =
    masked === undefined
      ? shares.mean([0])
      : shares
          .mul(masked.reshape([-1, 1, 1]).to("float32"))
          .sum([0])
          .div(masked.sum().clamp(1).to("float32")); // [G, V]; if all recordings are short, no frame is masked
  return means.mul(means.add(SMALLEST).log()).sum([-1]).neg().exp().sum();
}
