import { TroupeError } from "../../../errors/index.ts";
import { ModuleBuffer, type Parameter } from "../../nn/index.ts";
import { hold, markOffloaded, ops, scope, sharesMemory, type Tensor } from "../../tensor/index.ts";
import { constantIn } from "../blocks/constant-words.ts";
import type { FlatBlock, FlatParameter } from "../blocks/flat-block.ts";
import type { BlockPlan, BlockUnit } from "../blocks/plan-blocks.ts";
import { mapTensors } from "../tape/map-tensors.ts";

/**
 * A model's parameters bound to views of the flat buffers in which they are gathered, or to placeholders if another stage holds
 * them.
 */
export class BoundParameters implements Disposable {
  readonly #bound: Tensor[] = [];
  readonly #leaves: readonly (readonly Leaf[])[];
  /** The destination of each leaf's gradient. */
  readonly #places = new Map<Tensor, LeafPlace>();
  /** Leaves that have memory only while gathered, by flat block. */
  readonly #paged: ReadonlyMap<number, Tensor[]>;
  readonly #gathered = new Set<number>();

  /**
   * @param fulls - one flat buffer a flat block, in the dtype of the computation; ownership passes
   * @param paged - indices of the flat blocks that have memory only while gathered
   */
  constructor({ units, layouts, absent }: BlockPlan, fulls: readonly Tensor[], paged: readonly number[]) {
    this.#paged = new Map(paged.map((block) => [block, []]));
    this.#leaves = units.map((unit) => this.#bindUnit(unit, layouts, fulls));
    const isComputed = ({ written, constant }: FlatBlock) => !written && !constant;
    const dtype = fulls.find((_, index) => isComputed(layouts[index] as FlatBlock))?.dtype ?? "float32";
    for (const parameter of absent) {
      const keepsType = parameter.dtype !== "float32" || parameter instanceof ModuleBuffer;
      const own = keepsType ? parameter.dtype : dtype;
      const placeholder = hold(() => ops.troupe.placeholder(parameter.shape, own));
      parameter.bind(placeholder);
      this.#bound.push(placeholder);
    }
    for (const full of fulls) full.dispose();
    for (const block of paged) this.markGathered(block, false);
  }

  /** Sets whether a flat block's parameters have memory: reading a paged one without memory throws. */
  markGathered(block: number, gathered: boolean): void {
    const leaves = this.#paged.get(block);
    if (leaves === undefined) return;
    markOffloaded(leaves, !gathered);
    if (gathered) this.#gathered.add(block);
    else this.#gathered.delete(block);
  }

  /** Runs `body`, which reads only the shapes of a unit's parameters: they need no memory. */
  asShapes<R>({ flats }: BlockUnit, body: () => R): R {
    const away = flats.filter((flat) => this.#paged.has(flat) && !this.#gathered.has(flat));
    for (const flat of away) this.markGathered(flat, true);
    try {
      return body();
    } finally {
      for (const flat of away) this.markGathered(flat, false);
    }
  }

  /**
   * Checks a block's result while its parameters have memory.
   * @throws {TroupeError} `BLOCK_TENSOR` for a view of parameters that will lose it
   */
  refuseViews({ name, flats }: BlockUnit, result: unknown): void {
    for (const flat of flats) {
      const [leaf] = this.#paged.get(flat) ?? [];
      if (leaf === undefined) continue;
      mapTensors(result, (tensor) => {
        if (sharesMemory(tensor, leaf)) throw viewOfParameter(name);
        return tensor;
      });
    }
  }

  /** @returns a unit's trainable parameters, in the order of its flat blocks: leaves of the graph */
  readonly trainable = (unit: number): readonly Tensor[] =>
    (this.#leaves[unit] ?? []).filter(({ parameter }) => parameter.trainable).map(({ tensor }) => tensor);

  /** @returns the destination of a leaf's gradient; undefined for a tensor that is no parameter's */
  readonly placeOf = (leaf: Tensor): LeafPlace | undefined => this.#places.get(leaf);

  /** Releases the views; the parameters cannot be used then. */
  [Symbol.dispose](): void {
    for (const tensor of this.#bound.splice(0)) tensor.dispose();
  }

  #bindUnit(
    { flats, parameters }: BlockUnit,
    layouts: readonly FlatBlock[],
    fulls: readonly Tensor[],
  ): Leaf[] {
    const rest = [...parameters];
    return flats.flatMap((index) => {
      const layout = layouts[index] as FlatBlock;
      const own = rest.splice(0, layout.parameters.length);
      const leaves = own.map((parameter, place) => {
        const flat = layout.parameters[place] as FlatParameter;
        const tensor = bindLeaf(parameter, flat, layout.constant, fulls[index] as Tensor);
        this.#places.set(tensor, { flat: index, parameter: place });
        return { parameter, tensor };
      });
      const tensors = leaves.map(({ tensor }) => tensor);
      this.#bound.push(...tensors);
      this.#paged.get(index)?.push(...tensors);
      return leaves;
    });
  }
}

/** A parameter and the view of its flat buffer that it is bound to. */
interface Leaf {
  readonly parameter: Parameter;
  readonly tensor: Tensor;
}

/** The destination of a gradient: a parameter of a flat block. */
export interface LeafPlace {
  readonly flat: number;
  readonly parameter: number;
}

function bindLeaf(parameter: Parameter, flat: FlatParameter, isConstant: boolean, full: Tensor): Tensor {
  const { offset, numel, shape } = flat;
  const view = scope(() => {
    const own = full.narrow(0, offset, numel);
    return hold((isConstant ? constantIn(own, flat) : own).view(shape).detach());
  });
  const leaf = parameter.trainable ? view.requiresGrad_() : view;
  parameter.bind(leaf);
  return leaf;
}

function viewOfParameter(name: string): TroupeError {
  return new TroupeError("BLOCK_TENSOR", {
    where: `block ${name}`,
    expected: "results with memory of their own",
    got: "a view of its parameters, which are offloaded once it returns",
    hint: "clone it, or leave their offload out",
    fields: { place: `block ${name}` },
  });
}
