import { isOnGpu, ops, type Tensor } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import { type Initializer, uniform, zeros } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { refuseUnknownOptions } from "../module/module-options.ts";
import { Parameter } from "../module/parameter.ts";
import { type ActivationName, activations, geluForm } from "./activation.ts";
import type { PrefixHeads } from "./prefix.ts";

/** Options of an affine map beside its sizes. */
export interface AffineOptions {
  /** Starts the weight. */
  readonly init?: Initializer;
  /** What follows the map, in one pass with the bias where a kernel has it. Default: nothing. */
  readonly activation?: ActivationName;
}

/**
 * What is added from outside to an affine map's product, before bias and activation: scale · up(down(x)), linear in x, so that
 * a map that is split splits it too. `down` and `up` are the map's own children under whatever names.
 */
export interface AddedProduct {
  /** What is done to x first, such as dropout, position by position. */
  readonly before?: Module & { forward(x: Tensor): Tensor };
  /** [..., in] → [..., r], without bias. */
  readonly down: Linear;
  /** [..., r] → [..., out], without bias. */
  readonly up: Linear;
  readonly scale: number;
}

/** What is tuned from outside of an affine map's features: each is multiplied by a number of its own. */
export interface FeatureScale {
  /** Before the product, or behind it and the bias. */
  readonly of: "inputs" | "outputs";
  /** A child of the map: one number a feature, [1, in] or [out, 1]. */
  readonly factors: Parameter;
}

/**
 * An affine map over the last dim and the activation behind it, in the two steps between which a split product is
 * summed: `finish(product(x))` is what `forward` computes. What is tuned from outside may add to the product, and stand behind
 * the activation.
 */
export abstract class Affine extends Module {
  /** Another module's parameter may be put here: that ties the two. */
  abstract weight: Parameter;
  abstract readonly bias: Parameter | null;
  readonly activation: ActivationName | undefined;
  #added: AddedProduct | undefined;
  #scale: FeatureScale | undefined;
  #prefix: PrefixHeads | undefined;
  #behind: (Module & { forward(y: Tensor): Tensor }) | undefined;

  constructor(activation: ActivationName | undefined) {
    super();
    this.activation = activation;
  }

  /** The dim of `weight` that counts outputs; the other one counts inputs. */
  abstract get outputDim(): 0 | 1;

  /** x W, whatever is added to it: [..., in] → [..., out]. */
  abstract ownProduct(x: Tensor): Tensor;

  /** What is added to the product. Set from outside. Default: nothing. */
  get added(): AddedProduct | undefined {
    return this.#added;
  }

  set added(added: AddedProduct | undefined) {
    this.#added = added;
  }

  /** What features are multiplied by. Set from outside. Default: nothing. */
  get scale(): FeatureScale | undefined {
    return this.#scale;
  }

  set scale(scale: FeatureScale | undefined) {
    this.#scale = scale;
  }

  /** What an attention finds in front of the heads that this map makes: split as its outputs are. Set from outside. */
  get prefix(): PrefixHeads | undefined {
    return this.#prefix;
  }

  set prefix(prefix: PrefixHeads | undefined) {
    this.#prefix = prefix;
  }

  /** What follows bias and activation, [..., out] → [..., out], a child of this map. Set from outside. Default: nothing. */
  get behind(): (Module & { forward(y: Tensor): Tensor }) | undefined {
    return this.#behind;
  }

  set behind(behind: (Module & { forward(y: Tensor): Tensor }) | undefined) {
    this.#behind = behind;
  }

  /**
   * Whether one kernel computes product and bias. On a GPU it does so before an activation too that takes no bias: an addition of
   * its own took 119 us there, GELU 68.
   */
  protected addsBiasAtOnce(x: Tensor): boolean {
    if (this.#added !== undefined || this.#scale !== undefined) return false;
    if (this.activation === undefined && this.#behind === undefined) return true;
    return this.bias !== null && isOnGpu(x) && !(isFused() && geluForm(this.activation) === "tanh");
  }

  /** x W and what is added to it, without bias and activation: [..., in] → [..., out]. */
  product(given: Tensor): Tensor {
    const x = this.scaledInputs(given);
    const own = this.ownProduct(x);
    return this.#added === undefined ? own : this.withAdded(own, this.down(x));
  }

  /** What the product is of in place of x: its features times their factors, where inputs have any. */
  scaledInputs(x: Tensor): Tensor {
    return this.#scaled(x, "inputs");
  }

  #scaled(x: Tensor, side: FeatureScale["of"]): Tensor {
    const { scale } = this;
    return scale?.of === side ? x.mul(scale.factors.tensor.to(x.dtype).view([-1])) : x;
  }

  /** The narrow half of what is added, of what {@link withAdded} makes the rest: [..., in] → [..., r]. */
  down(x: Tensor): Tensor {
    const { before, down } = this.#added as AddedProduct;
    return down.forward(before === undefined ? x : before.forward(x));
  }

  /** @param own - x W, [..., out] @param narrow - what {@link down} made of x, or sums of it, [..., r] */
  withAdded(own: Tensor, narrow: Tensor): Tensor {
    const { up, scale } = this.#added as AddedProduct;
    return own.add(up.forward(narrow), scale);
  }

  /** Adds the bias to a whole product, applies the activation and what is behind it: [..., out] → [..., out]. */
  finish(product: Tensor): Tensor {
    return this.#followed(this.#activated(product));
  }

  /** Applies activation and what is behind it to product and bias: [..., out] → [..., out]. */
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
    const whole = bias === null ? product : product.add(bias.tensor.to(product.dtype)); // autocast may have narrowed it
    const affine = this.#scaled(whole, "outputs");
    return activation === undefined ? affine : activations[activation](affine);
  }

  override forward(x: Tensor): Tensor {
    return this.finish(this.product(x));
  }
}

/** y = x Wᵀ + b over the last dim; weight [out, in], as in torch. Weight and bias start uniform in ±1/√in. */
export class Linear extends Affine {
  weight: Parameter;
  readonly bias: Parameter | null;

  /**
   * @param options.bias - whether a bias is added; default true
   * @param options.biasInit - starts the bias
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
   * What each of several maps makes of one input, [..., in] → [..., out] each. On a GPU they are one product where they are of one
   * size and nothing is added, put behind or wrapped around them: it fills the GPU better, and BERT's host, which launches queries',
   * keys' and values' products, sums and additions one by one, is what its GPU waits for.
   */
  static each(maps: readonly Linear[], x: Tensor): Tensor[] {
    const isOne = isOnGpu(x) && maps.every((map) => map.#isBare && map.#isLike(maps[0] as Linear));
    return isOne ? Linear.jointly(maps, x) : maps.map((map) => map.forward(x));
  }

  /** The same by one product, of bare maps of one size. */
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
      this.forward === Linear.prototype.forward
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
 * GPT-2's affine map: y = x W + b over the last dim, weight [in, out], the transpose of {@link Linear}'s. Starts
 * normal with deviation 0.02, bias zero.
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
