import { TroupeError } from "../../../errors/index.ts";
import { ModuleBuffer, type Parameter } from "../../nn/index.ts";
import { hold, markOffloaded, ops, scope, sharesMemory, type Tensor } from "../../tensor/index.ts";
import { constantIn } from "../blocks/constant-words.ts";
import type { FlatBlock, FlatParameter } from "../blocks/flat-block.ts";
import type { BlockPlan, BlockUnit } from "../blocks/plan-blocks.ts";
import { mapTensors } from "../tape/map-tensors.ts";

/**
 * A model's parameters bound to views of the flat buffers in which they are gathered, or to placeholders where another
 * stage holds them.
 */
export class BoundParameters implements Disposable {
  readonly #bound: Tensor[] = [];
  readonly #leaves: readonly (readonly Leaf[])[];
  /** Where each leaf's gradient belongs. */
  readonly #places = new Map<Tensor, LeafPlace>();
  /** Those that have no memory but while they are gathered, by flat block. */
  readonly #paged: ReadonlyMap<number, Tensor[]>;
  /** Of those, the ones that have memory now. */
  readonly #gathered = new Set<number>();

  /**
   * @param fulls - one flat buffer a flat block, in the dtype that is computed with; ownership passes
   * @param paged - the flat blocks, by index, that have no memory but while they are gathered
   */
  constructor(
    { units, layouts, absent }: BlockPlan,
    fulls: readonly Tensor[],
    paged: readonly number[] = [],
  ) {
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

  /** Says whether a flat block's parameters have memory: of those that may have none, reading one then throws. */
  markGathered(block: number, gathered: boolean): void {
    const leaves = this.#paged.get(block);
    if (leaves === undefined) return;
    markOffloaded(leaves, !gathered);
    if (gathered) this.#gathered.add(block);
    else this.#gathered.delete(block);
  }

  /** Runs `body`, which asks a unit's parameters for their shapes alone: those have them without memory too. */
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
   * Looks at what a block has returned while its parameters have memory.
   * @throws {TroupeError} `BLOCK_TENSOR` for a view of parameters that will have none
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

  /** @returns what is trainable now of a unit, in the order of its flat blocks: leaves of the graph */
  readonly trainable = (unit: number): readonly Tensor[] =>
    (this.#leaves[unit] ?? []).filter(({ parameter }) => parameter.trainable).map(({ tensor }) => tensor);

  /** @returns where a leaf's gradient belongs; undefined for a tensor that is no parameter's */
  readonly placeOf = (leaf: Tensor): LeafPlace | undefined => this.#places.get(leaf);

  /** Releases the views; the parameters are of no use then. */
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

/** A place for a gradient: which parameter of which flat block. */
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
  return new TroupeError(
    "BLOCK_TENSOR",
    {
      where: `block ${name}`,
      expected: "results with memory of their own",
      got: "a view of its parameters, which are offloaded once it returns",
      hint: "clone it, or leave their offload out",
    },
    { fields: { place: `block ${name}` } },
  );
}
