import { TroupeError, whatWasMeant } from "../../../errors/index.ts";
import { cutBlocks, type Module, ModuleBuffer, type Parameter, specOf } from "../../nn/index.ts";
import { blockOptionsOf, type Recompute } from "../layout/block-options.ts";
import type { Mesh } from "../layout/mesh.ts";
import { type BlockRange, oneStage, rangesOf, type StageCut } from "../layout/stage-cut.ts";
import type { ZeroLevel } from "../layout/zero.ts";
import type { SequenceRegion } from "../tensor-parallel/sequence-region.ts";
import { type FlatBlock, layoutBlock, type Sharing } from "./flat-block.ts";

/** A unit of computation: a block of the model, or the root, which is everything outside the blocks. */
export interface BlockUnit {
  readonly name: string;
  /** Undefined for the root. */
  readonly module: Module | undefined;
  /** Its flat blocks here, by index; empty if another stage holds it. */
  readonly flats: readonly number[];
  /** Its parameters here, in the order of its flat blocks and their layouts. */
  readonly parameters: readonly Parameter[];
  readonly recompute: Recompute;
}

/** A model cut for the engine of one rank: layouts are plain data, the modules and parameters stay in this thread. */
export interface BlockPlan {
  readonly layouts: readonly FlatBlock[];
  /** Every unit of the model in order; index 0 is the root. */
  readonly units: readonly BlockUnit[];
  readonly stages: StageCut;
  /** By chunk of this stage, the calls it computes. */
  readonly ranges: readonly BlockRange[];
  /** By chunk of this stage, the units whose gradients its passes make: the root, its blocks, and blocks of several chunks. */
  readonly chunkUnits: readonly ReadonlySet<number>[];
  /** Parameters that other stages hold and this one computes without. */
  readonly absent: readonly Parameter[];
  /** The region in which tensor-parallel ranks share the positions, if any. */
  readonly region: SequenceRegion | undefined;
}

/** The root's index in {@link BlockPlan.units}. */
export const ROOT_UNIT = 0;

/** Options for the layout of a rank's share of a model. */
export interface BlockPlanOptions {
  /** Level of every block without a level of its own. */
  readonly zero: ZeroLevel;
  readonly mesh: Mesh;
  readonly rank: number;
  /** Recomputation of every block without a setting of its own. Default: none. */
  readonly recompute?: Recompute;
  /** The stage of each part. Default: one stage with the complete model. */
  readonly stages?: StageCut;
  /** The region in which tensor-parallel ranks share the positions. Default: none. */
  readonly region?: SequenceRegion | undefined;
}

/**
 * Cuts a model into flat blocks: the items of its outermost module lists, and the root with everything else. Within one unit,
 * parameters with different holders lie in different flat blocks: experts, parameters that tensor parallelism has split and
 * others, those of several stages, frozen ones, and buffers.
 * @throws {TroupeError} `PARAMETER_DTYPE` for a parameter that is declared in other floats than float32
 */
export function planBlocks(model: Module, options: BlockPlanOptions): BlockPlan {
  const cut = cutBlocks(model);
  const planner = new Planner(options, options.stages ?? oneStage(cut.blocks.length));
  const root = planner.unit("root", undefined, cut.rest, undefined);
  const blocks = cut.blocks.map(({ name, module, parameters }, position) =>
    planner.unit(name, module, parameters, position),
  );
  const { layouts, stages, absent } = planner;
  const ranges = rangesOf(stages, options.mesh.placeOf(options.rank).pp);
  const chunkUnits = unitsOfChunks(stages, ranges);
  return { layouts, units: [root, ...blocks], stages, ranges, chunkUnits, absent, region: options.region };
}

/** A block of several chunks is made by the passes of all of them, as the root is. */
function unitsOfChunks({ calls }: StageCut, ranges: readonly BlockRange[]): ReadonlySet<number>[] {
  const own = ranges.map(
    ({ begin, end }) => new Set(calls.slice(begin, end).map((position) => position + 1)),
  );
  const shared = [...new Set(own.flatMap((units) => [...units]))].filter(
    (unit) => own.filter((units) => units.has(unit)).length > 1,
  );
  return own.map((units) => new Set([ROOT_UNIT, ...shared, ...units]));
}

/** Parameters of one unit that lie in one flat block. */
interface Held {
  readonly sharing: Sharing;
  readonly parameters: Map<string, Parameter>;
}

class Planner {
  readonly layouts: FlatBlock[] = [];
  readonly absent: Parameter[] = [];
  readonly stages: StageCut;
  readonly #options: BlockPlanOptions;

  constructor(options: BlockPlanOptions, stages: StageCut) {
    this.#options = options;
    this.stages = stages;
  }

  /** @param position - of the block in the model; undefined for the root */
  unit(
    name: string,
    module: Module | undefined,
    parameters: ReadonlyMap<string, Parameter>,
    position: number | undefined,
  ): BlockUnit {
    const own = module === undefined ? {} : blockOptionsOf(module);
    const { zero, recompute = false } = this.#options;
    const flats: number[] = [];
    const ordered: Parameter[] = [];
    for (const [suffix, held] of this.#sorted(parameters, position)) {
      const specs = [...held.parameters].map(([parameterName, parameter]) =>
        specOf(parameterName, parameter),
      );
      const flatName = suffix === "" ? name : `${name} (${suffix})`;
      flats.push(this.layouts.length);
      ordered.push(...held.parameters.values());
      // Every rank has its own copy of a buffer: there is no optimizer state to split.
      const level = held.sharing.written || held.sharing.constant ? 0 : (own.zero ?? zero);
      this.layouts.push(layoutBlock(this.layouts.length, flatName, level, specs, held.sharing));
    }
    const recomputed = module !== undefined && (own.recompute ?? recompute);
    if (typeof recomputed !== "boolean") checkParts(name, module, recomputed);
    return { name, module, flats, parameters: ordered, recompute: recomputed };
  }

  /** Sorts a unit's parameters by how they are shared; those of other stages are set aside. */
  #sorted(parameters: ReadonlyMap<string, Parameter>, position: number | undefined): Map<string, Held> {
    const { mesh, rank } = this.#options;
    const sorted = new Map<string, Held>();
    for (const [name, parameter] of parameters) {
      const holders = this.stages.holdersOf(parameter, position);
      if (!holders.includes(mesh.placeOf(rank).pp)) {
        this.absent.push(parameter);
        continue;
      }
      checkDType(name, parameter);
      const { sharing, suffix } = sharingOf(parameter, holders, mesh, rank);
      const held = sorted.get(suffix) ?? { sharing, parameters: new Map<string, Parameter>() };
      held.parameters.set(name, parameter);
      sorted.set(suffix, held);
    }
    return sorted;
  }
}

/** A block is one buffer of one dtype; the run chooses the dtype of the computation. */
function checkDType(name: string, parameter: Parameter): void {
  const { dtype } = parameter;
  if (dtype === "float32" || parameter instanceof ModuleBuffer || !dtype.includes("float")) return;
  throw new TroupeError("PARAMETER_DTYPE", {
    where: name,
    expected: "a parameter declared in float32",
    got: dtype,
    hint: "precision is an option of the run; a constant of another dtype is a ModuleBuffer",
    fields: { name, dtype },
  });
}

/** How a parameter is shared, and a word for it if that is not the common case. */
function sharingOf(
  parameter: Parameter,
  holders: readonly number[],
  mesh: Mesh,
  rank: number,
): { readonly sharing: Sharing; readonly suffix: string } {
  const { tp } = mesh.placeOf(rank);
  const replicas = mesh.groupOf(parameter.expert ? "edp" : "dp", rank).map((peer) => mesh.placeOf(peer).dp);
  const group = holders.flatMap((pp) => replicas.map((dp) => mesh.rankAt({ pp, dp, tp })));
  // An expert's parameter is split over expert-parallel ranks, and complete on tensor-parallel ones.
  const split = parameter.split !== undefined && !parameter.expert;
  const constant = parameter.dtype !== "float32";
  const written = parameter instanceof ModuleBuffer && !constant;
  const copied = mesh.shape.tp > 1 && !split;
  const base = parameter.role === "base";
  const words = [
    holders.length > 1 ? "tied" : "",
    parameter.expert ? "experts" : "",
    copied ? "copied" : "",
    constant ? "constants" : written ? "buffers" : parameter.trainable || base ? "" : "frozen",
    base ? "base" : "",
  ];
  const { trainable } = parameter;
  const counted = !copied || tp === 0;
  const apart = parameter.expert && { partStride: mesh.shape.tp };
  return {
    sharing: { group, ...apart, counted, written, constant, trainable, base },
    suffix: words.filter((word) => word !== "").join(", "),
  };
}

/** @throws {TroupeError} `RECOMPUTE_PART` for a name that no module of the block has */
function checkParts(block: string, module: Module | undefined, parts: readonly string[]): void {
  const names = [...(module?.namedModules() ?? new Map<string, Module>()).keys()].filter(
    (name) => name !== "",
  );
  const unknown = parts.find((part) => !names.includes(part));
  if (unknown === undefined) return;
  throw new TroupeError("RECOMPUTE_PART", {
    where: "recompute",
    expected: `one of the modules of block ${block}`,
    got: unknown,
    hint: whatWasMeant(unknown, names),
    fields: { block, part: unknown, names },
  });
}
