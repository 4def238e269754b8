import { Drawing } from "../../../compute/nn/index.ts";
import { arange, type Device, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { SpeechConfig } from "./config.ts";

/** Options of masked spans along one axis. */
interface Spans {
  /** Approximate share of the axis. */
  readonly share: number;
  readonly length: number;
  /** Minimum number of spans, if they fit. */
  readonly atLeast: number;
}

/**
 * In training, masks spans of frames, which a vector of the model replaces, and spans of features, which become 0: in the same
 * number and with the same probabilities as transformers. A pure function of the run's seed, the step and the micro-batch, so all
 * layouts mask the same.
 * @see Park et al. 2019, https://arxiv.org/abs/1904.08779; Baevski et al. 2020, https://arxiv.org/abs/2006.11477
 */
export class SpecAugment extends Drawing {
  readonly #time: Spans;
  readonly #features: Spans;
  readonly #isOn: boolean;

  constructor(config: SpeechConfig) {
    super();
    this.#isOn = config.apply_spec_augment;
    this.#time = {
      share: config.mask_time_prob,
      length: config.mask_time_length,
      atLeast: config.mask_time_min_masks,
    };
    this.#features = {
      share: config.mask_feature_prob,
      length: config.mask_feature_length,
      atLeast: config.mask_feature_min_masks,
    };
  }

  /**
   * @param frames - [B, T, D]
   * @param lengths - int64 [B], frames before the padding; default all T
   * @param vector - [D], replaces masked frames
   * @param given - bool [B, T], masked frames, also in evaluation; default drawn
   * @throws {TroupeError} `MODEL_INPUT` for fewer frames than a span has; `RANDOMNESS_UNBOUND`
   */
  override forward(
    frames: Tensor,
    lengths: Tensor | undefined,
    vector: Tensor | undefined,
    given?: Tensor,
  ): Tensor {
    const { device } = frames;
    if (!this.#isOn || device === "meta") return frames;
    const [batch = 0, numFrames = 0, width = 0] = frames.shape;
    let masked = frames;
    if (vector !== undefined && (given !== undefined || (this.training && this.#time.share > 0))) {
      const seen = given ?? this.#masked("time", this.#time, [batch, numFrames], lengths, device);
      masked = ops.where(seen.unsqueeze(2), vector.to(frames.dtype), masked);
    }
    if (this.training && this.#features.share > 0) {
      const seen = this.#masked("features", this.#features, [batch, width], undefined, device);
      masked = masked.maskedFill(seen.unsqueeze(1), 0);
    }
    return masked;
  }

  /** bool [B, N]: masked places. Starts of spans are drawn without repetition; spans may overlap. */
  #masked(
    axis: string,
    { share, length, atLeast }: Spans,
    [batch, size]: readonly [number, number],
    given: Tensor | undefined,
    device: Device,
  ): Tensor {
    if (length > size) throw tooShort(axis, length, size);
    const lengths = (given ?? ops.full([batch], size, "int64")).unsqueeze(1); // [B, 1]
    const starts = lengths.sub(length - 1).clamp(0); // [B, 1], places where a span may start
    const rounding = this.uniform([], device, `${axis} rounding`).to("float64");
    const wished = lengths.to("float64").mul(share).div(length).add(rounding).floor();
    const fitting = wished.clamp(atLeast).clamp(undefined, Math.floor(size / length));
    const count = ops.minimum(fitting, starts.to("float64")); // [B, 1]
    const places = arange(size, { dtype: "int64" }).unsqueeze(0); // [1, N]
    const lots = this.uniform([batch, size], device, axis).maskedFill(places.ge(starts), 2); // [B, N]
    const rank = lots.argsort(1).argsort(1); // [B, N], of a place's lot among its row's
    const begun = rank.lt(count).to("int64").cumsum(1); // [B, N], spans that start here or before
    const ended = ops.pad(begun.narrow(1, 0, size - length), [length, 0]);
    return begun.gt(ended);
  }
}

function tooShort(axis: string, length: number, size: number): TroupeError {
  return new TroupeError("MODEL_INPUT", {
    where: "SpecAugment",
    expected: `at least mask_${axis === "time" ? "time" : "feature"}_length = ${length} ${axis === "time" ? "frames" : axis}`,
    got: `${size}`,
    hint: "longer recordings, or apply_spec_augment: false",
    fields: { axis, length, size },
  });
}
