import type { NamesOf } from "../../../errors/index.ts";
import { empty, gradEnabled, ops, type Tensor, withoutAutocast } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { isWriting } from "../attention/decoding.ts";
import { Drawing } from "../layers/drawing.ts";
import { Linear } from "../layers/linear.ts";
import { type Initializer, normal } from "../module/initializer.ts";
import type { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import type { Experts } from "./experts.ts";
import { combine, dispatch, type GateOptions, type Routing, route } from "./routing.ts";

/** Options of a {@link MixtureOfExperts}; defaults are DeepSpeed's. */
export interface MixtureOptions {
  /** Number of experts per token. Default: 1. */
  readonly k?: 1 | 2;
  /** Capacity of an expert in training, as a factor on its even share of tokens. Default: 1. */
  readonly capacityFactor?: number;
  /** Capacity factor in evaluation. Default: 1. */
  readonly evalCapacityFactor?: number;
  /** The least capacity of an expert, in tokens. Default: 4. */
  readonly minCapacity?: number;
  /** Whether tokens beyond an expert's capacity are dropped; while a text is generated none are. Default: true. */
  readonly dropTokens?: boolean;
  /** Whether a full expert keeps a random sample of its tokens (k = 1, while training). Default: true. */
  readonly randomTokenSelection?: boolean;
  /** In training: "jitter" scales the gate's input by 1 ± 0.01, "rsample" adds Gumbel noise to the first choice (k = 1). */
  readonly noise?: "none" | "jitter" | "rsample";
  /**
   * Tokens over which the auxiliary loss asks for an even spread: "batch" for all of a micro-batch, "sequence" for those of
   * each sequence (dim -2 is its tokens), averaged over the sequences. The latter does not depend on how sequences are
   * distributed to micro-batches, and can be weighted. Default: "batch".
   * @see DeepSeek-AI 2024, "DeepSeek-V2", § 2.2.3, https://arxiv.org/abs/2405.04434; Megatron-LM's `seq_aux_loss`
   */
  readonly balance?: "batch" | "sequence";
  /** A layer parallel to the experts, weighted by a second gate (residual MoE). [..., D] → [..., D]. Default: none. */
  readonly residual?: Module & { forward(x: Tensor): Tensor };
  /** Initializes the gates. Default: normal(0, 0.02). */
  readonly init?: Initializer;
}

const NAMES: NamesOf<MixtureOptions> = {
  ...{ k: true, capacityFactor: true, evalCapacityFactor: true, minCapacity: true, dropTokens: true },
  ...{ randomTokenSelection: true, noise: true, balance: true, residual: true, init: true },
};

const NOISES = ["none", "jitter", "rsample"];

const JITTER = 1e-2;

/** The result of {@link MixtureOfExperts}. */
export interface MixtureOutput {
  /** [..., D]. */
  readonly output: Tensor;
  /** float32 scalar that measures how unevenly tokens were spread; 1 at best. Add it to the loss, times a coefficient. */
  readonly auxiliaryLoss: Tensor;
  /** int64 [E]: the number of tokens whose first choice was each expert. */
  readonly counts: Tensor;
}

/**
 * A layer in which a gate sends each token to one or two of many experts. The gate computes in float32. Its random draws are
 * pure functions of seed, step, micro-batch and the module's name.
 * @see Rajbhandari et al. 2022, "DeepSpeed-MoE", https://arxiv.org/abs/2201.05596
 */
export class MixtureOfExperts extends Drawing {
  readonly gate: Linear;
  readonly experts: Experts;
  readonly residual: (Module & { forward(x: Tensor): Tensor }) | null;
  readonly coefficient: Linear | null;
  readonly options: Required<Omit<MixtureOptions, "residual" | "init">>;
  /** Set from outside if experts are distributed to ranks, which must agree on one capacity. */
  agreeOnCapacity: ((capacity: number) => number) | undefined = undefined;

  /** @throws `MODULE_ARGUMENT` for options out of range */
  constructor(width: number, experts: Experts, options: MixtureOptions = {}) {
    super();
    refuseUnknownOptions(this, options, NAMES);
    const { residual = null, init = normal(0, 0.02), ...gate } = options;
    this.options = {
      k: 1,
      capacityFactor: 1,
      evalCapacityFactor: 1,
      minCapacity: 4,
      dropTokens: true,
      randomTokenSelection: true,
      noise: "none",
      balance: "batch",
      ...gate,
    };
    check(this.options, experts.numExperts);
    this.gate = new Linear(width, experts.numExperts, { bias: false, init });
    this.experts = experts;
    this.residual = residual;
    this.coefficient = residual === null ? null : new Linear(width, 2, { init });
  }

  /** @param x - [..., D] */
  override forward(x: Tensor): MixtureOutput {
    if (x.device === "meta" && !gradEnabled()) return this.#shapes(x);
    const rows = x.reshape([-1, x.shape.at(-1) ?? 0]); // [S, D]
    const routing = withoutAutocast(() => this.#route(rows.to("float32"), x.shape.at(-2)));
    const answers = this.experts.forward(dispatch(rows, routing)); // [E, C, D]
    const output = combine(answers, routing).view(x.shape);
    return {
      output: this.#withResidual(x, output),
      auxiliaryLoss: routing.auxiliaryLoss,
      counts: routing.counts,
    };
  }

  /** Returns the result for a meta tensor if only shapes are needed, as in another pipeline stage. */
  #shapes(x: Tensor): MixtureOutput {
    const { placeholder } = ops.troupe;
    // Count the draws of this call, also if another stage computes it.
    for (const purpose of this.#drawn()) this.draw(purpose);
    return {
      output: placeholder(x.shape, x.dtype),
      auxiliaryLoss: placeholder([], "float32"),
      counts: placeholder([this.experts.numExperts], "int64"),
    };
  }

  #route(rows: Tensor, length: number | undefined): Routing {
    const logits = ops.linear(this.#jittered(rows), this.gate.weight.tensor.to("float32")); // [S, E]
    const sequenceLength = this.options.balance === "sequence" ? length : undefined;
    const options = { ...this.#gateOptions(), sequenceLength };
    return route(logits, options, this.#noise(logits), this.agreeOnCapacity);
  }

  #gateOptions(): GateOptions {
    const { k, capacityFactor, evalCapacityFactor, minCapacity, dropTokens } = this.options;
    return {
      k,
      minCapacity,
      // A text must not depend on those that are written beside it.
      dropTokens: dropTokens && !isWriting(),
      capacityFactor: this.training ? capacityFactor : evalCapacityFactor,
    };
  }

  /** Returns the kinds of draws that a call makes now. */
  #drawn(): ReadonlySet<"jitter" | "gumbel" | "keys"> {
    const { k, noise, randomTokenSelection, dropTokens } = this.options;
    const drawn = new Set<"jitter" | "gumbel" | "keys">();
    if (!this.training) return drawn;
    if (noise === "jitter") drawn.add("jitter");
    if (k === 2 || noise === "rsample") drawn.add("gumbel");
    if (k === 1 && randomTokenSelection && dropTokens) drawn.add("keys");
    return drawn;
  }

  #jittered(rows: Tensor): Tensor {
    if (!this.#drawn().has("jitter")) return rows;
    return rows.mul(this.#uniform(rows, 1 - JITTER, 1 + JITTER, "jitter"));
  }

  #noise(logits: Tensor) {
    const drawn = this.#drawn();
    return {
      gumbel: drawn.has("gumbel")
        ? this.#uniform(logits, 0, 1, "gumbel")
            .clamp(2 ** -32)
            .log()
            .neg()
            .log()
            .neg()
        : undefined,
      keys: drawn.has("keys") ? this.#uniform(logits, 0, 1, "keys") : undefined,
    };
  }

  /** Draws as many numbers as `like` has; a placeholder for a meta tensor. */
  #uniform({ shape, device }: Tensor, low: number, high: number, purpose: string): Tensor {
    const { seed, stream } = this.draw(purpose);
    if (device === "meta") return ops.troupe.placeholder(shape, "float32");
    return ops.troupe.philoxUniform_(empty(shape), low, high, seed, stream, 0);
  }

  #withResidual(x: Tensor, output: Tensor): Tensor {
    if (this.residual === null || this.coefficient === null) return output;
    const [ofExperts, ofResidual] = this.coefficient.forward(x).softmax(-1).chunk(2, -1) as [Tensor, Tensor]; // [..., 1]
    return output.mul(ofExperts).add(this.residual.forward(x).mul(ofResidual));
  }
}

function check(options: MixtureOfExperts["options"], numExperts: number): void {
  const refuse = (expected: string, got: unknown): never => {
    throw argumentError("MixtureOfExperts", expected, got);
  };
  const { k, capacityFactor, evalCapacityFactor, minCapacity, noise, balance } = options;
  if (k !== 1 && k !== 2) refuse("1 or 2 experts per token", k);
  if (numExperts < k) refuse(`${k} experts or more`, numExperts);
  for (const factor of [capacityFactor, evalCapacityFactor]) {
    if (!(factor > 0)) refuse("capacity factors that are positive", factor);
  }
  if (!Number.isSafeInteger(minCapacity) || minCapacity < 1)
    refuse("minCapacity to be an integer ≥ 1", minCapacity);
  if (balance !== "batch" && balance !== "sequence") refuse('balance "batch" or "sequence"', balance);
  if (!NOISES.includes(noise)) refuse('noise "none", "jitter" or "rsample"', noise);
  if (noise === "rsample" && k === 2)
    refuse('noise "rsample" for k = 1 only, as the second choice is always drawn', noise);
}
