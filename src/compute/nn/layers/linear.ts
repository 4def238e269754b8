import { describeValue, TroupeError, whatWasMeant } from "../../../errors/index.ts";
import { isInvariant, isOnGpu, ops, type Tensor } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import { type Initializer, uniform, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import { Parameter } from "../module/parameter.ts";
import { type ActivationName, activations, geluForm } from "./activation.ts";
import type { PrefixHeads } from "./prefix.ts";

/** Options of an affine map. */
export interface AffineOptions {
  /** Initializes the weight. */
  readonly init?: Initializer;
  /** Activation after the map, in one pass with the bias if there is a kernel. Default: none. */
  readonly activation?: ActivationName;
}

/**
 * A low-rank addition (LoRA) to an affine map's product, before bias and activation: scale · up(down(x)). It is linear in x,
 * so that splitting the map splits it too. `down` and `up` are children of the map under any names.
 */
export interface AddedProduct {
  /** Applied to x first, position by position, such as dropout. */
  readonly before?: Module & { forward(x: Tensor): Tensor };
  /** [..., in] → [..., r], without bias. */
  readonly down: Linear;
  /** [..., r] → [..., out], without bias. */
  readonly up: Linear;
  readonly scale: number;
}

/** Learned factors on an affine map's features (IA³): each feature is multiplied by its own. */
export interface FeatureScale {
  /** "inputs" before the product, or "outputs" after it and the bias. */
  readonly of: "inputs" | "outputs";
  /** One number per feature, [1, in] or [out, 1]; a child of the map. */
  readonly factors: Parameter;
}

/**
 * An affine map over the last dim with its activation. `forward` computes `finish(product(x))`, so that a split product can
 * be summed between the two steps. Deltas may add to the product and follow the activation.
 */
export abstract class Affine extends Module {
  /** Assign another module's parameter to tie the two. */
  abstract weight: Parameter;
  abstract readonly bias: Parameter | null;
  readonly activation: ActivationName | undefined;
  #added: AddedProduct | undefined;
  #scale: FeatureScale | undefined;
  #prefix: PrefixHeads | undefined;
  #behind: (Module & { forward(y: Tensor): Tensor }) | undefined;

  constructor(activation: ActivationName | undefined) {
    super();
    if (activation !== undefined && !Object.hasOwn(activations, activation))
      throw new TroupeError("MODULE_ARGUMENT", {
        where: this.constructor.name,
        expected: "activation to be the name of one",
        got: describeValue(activation),
        hint: whatWasMeant(String(activation), Object.keys(activations)),
      });
    this.activation = activation;
  }

  /** The dim of `weight` that has the outputs; the other has the inputs. */
  abstract get outputDim(): 0 | 1;

  /** Computes x W, without additions: [..., in] → [..., out]. */
  abstract ownProduct(x: Tensor): Tensor;

  /** The addition to the product. Set from outside. Default: none. */
  get added(): AddedProduct | undefined {
    return this.#added;
  }

  set added(added: AddedProduct | undefined) {
    this.#added = added;
  }

  /** The factors on features. Set from outside. Default: none. */
  get scale(): FeatureScale | undefined {
    return this.#scale;
  }

  set scale(scale: FeatureScale | undefined) {
    this.#scale = scale;
  }

  /** Prefix that an attention puts before the heads that this map makes; split like its outputs. Set from outside. */
  get prefix(): PrefixHeads | undefined {
    return this.#prefix;
  }

  set prefix(prefix: PrefixHeads | undefined) {
    this.#prefix = prefix;
  }

  /** A module after bias and activation, [..., out] → [..., out], a child of this map. Set from outside. Default: none. */
  get behind(): (Module & { forward(y: Tensor): Tensor }) | undefined {
    return this.#behind;
  }

  set behind(behind: (Module & { forward(y: Tensor): Tensor }) | undefined) {
    this.#behind = behind;
  }

  /**
   * Whether one kernel computes product and bias. On a GPU it does so also before an activation without a fused bias: a
   * separate addition took 119 us there, GELU 68.
   */
  protected addsBiasAtOnce(x: Tensor): boolean {
    if (this.#added !== undefined || this.#scale !== undefined) return false;
    if (this.activation === undefined && this.#behind === undefined) return true;
    return this.bias !== null && isOnGpu(x) && !(isFused() && geluForm(this.activation) === "tanh");
  }

  /** Computes x W with its additions, without bias and activation: [..., in] → [..., out]. */
  product(given: Tensor): Tensor {
    const x = this.scaledInputs(given);
    const own = this.ownProduct(x);
    return this.#added === undefined ? own : this.withAdded(own, this.down(x));
  }

  /** Returns x with its features multiplied by their factors, if inputs have any. */
  scaledInputs(x: Tensor): Tensor {
    return this.#scaled(x, "inputs");
  }

  #scaled(x: Tensor, side: FeatureScale["of"]): Tensor {
    const { scale } = this;
    return scale?.of === side ? x.mul(scale.factors.tensor.to(x.dtype).view([-1])) : x;
  }

  /** Computes the first half of the addition, which {@link withAdded} completes: [..., in] → [..., r]. */
  down(x: Tensor): Tensor {
    const { before, down } = this.#added as AddedProduct;
    return down.forward(before === undefined ? x : before.forward(x));
  }

  /** Completes the addition. @param own - x W, [..., out] @param narrow - results of {@link down}, or their sum, [..., r] */
  withAdded(own: Tensor, narrow: Tensor): Tensor {
    const { up, scale } = this.#added as AddedProduct;
    // One operation rounds once or twice, depending on the place of an element in memory.
    return isInvariant() ? own.add(up.forward(narrow).mul(scale)) : own.add(up.forward(narrow), scale);
  }

  /** Adds the bias to a complete product, and applies the activation and what follows it: [..., out] → [..., out]. */
  finish(product: Tensor): Tensor {
    return this.#followed(this.#activated(product));
  }

  /** Applies the activation and what follows it to product plus bias: [..., out] → [..., out]. */
  protected finishAffine(affine: Tensor): Tensor {
    return this.#followed(this.activation === undefined ? affine : activations[this.activation](affine));
  }

  #followed(active: Tensor): Tensor {
    return this.#behind === undefined ? active : this.#behind.forward(active);
  }

  #activated(product: Tensor): Tensor {
    const { activation, bias } = this;
    const form = this.#scale === undefined ? geluForm(activation) : undefined;
    if (bias !== null && isFused() && form !== undefined && product.dtype !== "float64") {
      return ops.troupe.biasGelu(product, bias.tensor, form); // has no float64
    }
    const biased = bias === null ? product : product.add(bias.tensor.to(product.dtype)); // autocast may have cast it
    const affine = this.#scaled(biased, "outputs");
    return activation === undefined ? affine : activations[activation](affine);
  }

  override forward(x: Tensor): Tensor {
    return this.finish(this.product(x));
  }
}

/**
 * The affine map y = x Wᵀ + b over the last dim; weight [out, in], as in torch. Weight and bias are initialized uniformly in
 * ±1/√in.
 */
export class Linear extends Affine {
  weight: Parameter;
  readonly bias: Parameter | null;
  readonly #unwrapped = this.forward;

  /**
   * @param options.bias - whether a bias is added; default true
   * @param options.biasInit - initializes the bias
   */
  constructor(
    numInputs: number,
    numOutputs: number,
    options: AffineOptions & { readonly bias?: boolean; readonly biasInit?: Initializer } = {},
  ) {
    super(options.activation);
    refuseUnknownOptions(this, options, { bias: true, biasInit: true, init: true, activation: true });
    const bound = 1 / Math.sqrt(numInputs);
    this.weight = new Parameter([numOutputs, numInputs], options.init ?? uniform(-bound, bound));
    this.bias =
      options.bias === false ? null : new Parameter([numOutputs], options.biasInit ?? uniform(-bound, bound));
  }

  /**
   * Applies several maps to one input, [..., in] → [..., out] each. On a GPU this is one product if the maps have one size
   * and nothing is added to, placed after or wrapped around them. That fills the GPU better and launches fewer kernels: for
   * BERT the GPU waits for the host's launches.
   */
  static each(maps: readonly Linear[], x: Tensor): Tensor[] {
    const isOne = isOnGpu(x) && maps.every((map) => map.#isBare && map.#isLike(maps[0] as Linear));
    return isOne ? Linear.jointly(maps, x) : maps.map((map) => map.forward(x));
  }

  /** Applies bare maps of one size by one product. */
  static jointly(maps: readonly Linear[], x: Tensor): Tensor[] {
    const weight = ops.cat(maps.map((map) => map.weight.tensor)); // [maps · out, in]
    const biases = maps.flatMap((map) => map.bias?.tensor ?? []);
    const joined = ops.linear(x, weight, biases.length === 0 ? undefined : ops.cat(biases)); // [..., maps · out]
    return joined.chunk(maps.length, -1);
  }

  get #isBare(): boolean {
    return (
      this.activation === undefined &&
      this.added === undefined &&
      this.behind === undefined &&
      this.forward === this.#unwrapped &&
      Object.getPrototypeOf(this).forward === Linear.prototype.forward
    );
  }

  #isLike(other: Linear): boolean {
    const [mine, its] = [this.weight.tensor, other.weight.tensor];
    return (
      mine.shape.join() === its.shape.join() &&
      mine.dtype === its.dtype &&
      (this.bias === null) === (other.bias === null)
    );
  }

  override get outputDim(): 0 {
    return 0;
  }

  override ownProduct(x: Tensor): Tensor {
    return ops.linear(x, this.weight.tensor);
  }

  override forward(x: Tensor): Tensor {
    if (!this.addsBiasAtOnce(x)) return super.forward(x);
    return this.finishAffine(ops.linear(x, this.weight.tensor, this.bias?.tensor));
  }
}

/**
 * GPT-2's affine map: y = x W + b over the last dim, weight [in, out], the transpose of {@link Linear}'s. The weight is
 * initialized from a normal distribution with deviation 0.02, the bias with zeros.
 */
export class Conv1D extends Affine {
  weight: Parameter;
  readonly bias: Parameter;

  constructor(numInputs: number, numOutputs: number, options: AffineOptions = {}) {
    super(options.activation);
    refuseUnknownOptions(this, options, { init: true, activation: true });
    this.weight = new Parameter(
      [numInputs, numOutputs],
      options.init ?? { kind: "normal", mean: 0, std: 0.02 },
    );
    this.bias = new Parameter([numOutputs], zeros);
  }

  override get outputDim(): 1 {
    return 1;
  }

  override ownProduct(x: Tensor): Tensor {
    const { rows, outShape } = this.#flatten(x);
    return rows.matmul(this.weight.tensor).view(outShape);
  }

  override forward(x: Tensor): Tensor {
    if (!this.addsBiasAtOnce(x)) return super.forward(x);
    const { rows, outShape } = this.#flatten(x);
    return this.finishAffine(ops.addmm(this.bias.tensor, rows, this.weight.tensor).view(outShape));
  }

  #flatten(x: Tensor): { rows: Tensor; outShape: number[] } {
    const [numInputs = 0, numOutputs = 0] = this.weight.shape;
    return { rows: x.reshape([-1, numInputs]), outShape: [...x.shape.slice(0, -1), numOutputs] }; // rows [N, in]
  }
}
