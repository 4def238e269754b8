import { TroupeError } from "../../../errors/index.ts";
import { type Module, type Parameter, wrapForward } from "../../nn/index.ts";
import { noGrad, ops, scope, type Tensor } from "../../tensor/index.ts";
import { dealCalls } from "./stages.ts";

/** Says which pipeline stage computes which call of a block, and holds which parameter. */
export interface StageCut {
  readonly numStages: number;
  /** Chunks of the model on each stage. */
  readonly numChunks: number;
  /** Blocks in the order in which forward calls them, by position in the model; one may be called several times. */
  readonly calls: readonly number[];
  /** The chunk of each call along the model, chunk · numStages + stage. The last may have no call, but the model's end. */
  readonly virtualStageOf: readonly number[];
  /** @returns the stages that hold a parameter of the block at `position`, or of the root; in order */
  holdersOf(parameter: Parameter, position: number | undefined): readonly number[];
}

/** Calls of blocks one after the other, counted along forward: from `begin` up to, not with, `end`. */
export interface BlockRange {
  readonly begin: number;
  readonly end: number;
}

/** @returns by chunk, the calls that `stage` computes; an empty range behind all of them if it has the model's end alone */
export function rangesOf({ numStages, numChunks, virtualStageOf }: StageCut, stage: number): BlockRange[] {
  const end = virtualStageOf.length;
  return Array.from({ length: numChunks }, (_, chunk) => {
    const virtual = chunk * numStages + stage;
    const begin = virtualStageOf.indexOf(virtual);
    return begin < 0 ? { begin: end, end } : { begin, end: virtualStageOf.lastIndexOf(virtual) + 1 };
  });
}

/** A single stage with the complete model. */
export function oneStage(numBlocks: number): StageCut {
  const onlyStage = [0];
  return {
    numStages: 1,
    numChunks: 1,
    calls: Array.from({ length: numBlocks }, (_, position) => position),
    virtualStageOf: new Array<number>(numBlocks).fill(0),
    holdersOf: () => onlyStage,
  };
}

/** The use of blocks and parameters, traced by running the model on tensors without memory. */
export interface TracedUse {
  /** Blocks in the order in which forward calls them, by position in the model. */
  readonly calls: readonly number[];
  /** Parameters outside the blocks, with the numbers of blocks that had been called at each use. */
  readonly rootUse: ReadonlyMap<Parameter, ReadonlySet<number>>;
}

/**
 * Runs a model without memory once on placeholders, and records which parameter is used where.
 * @param blocks - the model's blocks, in order
 * @param rootParameters - the parameters outside them
 * @param forward - computes the loss of a batch
 */
export function traceUse(
  model: Module,
  blocks: readonly Module[],
  rootParameters: Iterable<Parameter>,
  forward: () => Tensor,
): TracedUse {
  const calls: number[] = [];
  const rootUse = new Map<Parameter, Set<number>>();
  const restore = blocks.map((block, position) =>
    wrapForward(block, (inner, inputs) => {
      calls.push(position);
      return inner(...inputs) as never;
    }),
  );
  scope(() => {
    const all = [...model.namedState().values(), ...model.namedBuffers().values()];
    for (const parameter of all) parameter.bind(ops.troupe.placeholder(parameter.shape, parameter.dtype));
    for (const parameter of rootParameters) {
      const uses = new Set<number>();
      rootUse.set(parameter, uses);
      restore.push(watch(parameter, () => uses.add(calls.length)));
    }
    try {
      noGrad(forward);
    } finally {
      for (const undo of restore) undo();
      for (const parameter of all) parameter.unbind();
    }
  });
  return { calls, rootUse };
}

/**
 * Cuts a model into stages, balanced by the parameters that their calls of blocks compute with. Each stage that calls a block
 * holds it.
 * @param blocks - parameters of each block
 * @throws {TroupeError} `PIPELINE_MODEL` for fewer calls than chunks before the last, or a forward that does not call every block
 */
export function cutStages(
  blocks: readonly (readonly Parameter[])[],
  use: TracedUse,
  shape: { readonly numStages: number; readonly numChunks: number },
): StageCut {
  const { numStages, numChunks } = shape;
  const numVirtual = numStages * numChunks;
  const { calls } = use;
  if (calls.length + 1 < numVirtual)
    throw modelError(
      `at least ${numVirtual - 1} calls of blocks for ${numStages} stages of ${numChunks} chunks`,
      calls.length,
      `use pp ${Math.max(1, Math.floor((calls.length + 1) / numChunks))}, or more layers`,
    );
  if (blocks.some((_, position) => !calls.includes(position)))
    throw modelError("a forward that calls every block", `calls [${calls}]`);
  const sizes = blocks.map((parameters) => parameters.reduce((sum, { numel }) => sum + numel, 0));
  const costs = calls.map((position) => sizes[position] as number);
  const { virtualStageOf, stageAfter } = dealCalls(costs, numVirtual);
  const holders = new Map(
    [...use.rootUse].map(([parameter, uses]) => [
      parameter,
      // Unused parameters stay on stage 0.
      uses.size === 0 ? [0] : inOrder([...uses].map((numCalls) => stageAfter(numCalls) % numStages)),
    ]),
  );
  const callers = blocks.map((_, position) =>
    inOrder(
      calls.flatMap((called, call) => (called === position ? [(virtualStageOf[call] ?? 0) % numStages] : [])),
    ),
  );
  return {
    numStages,
    numChunks,
    calls,
    virtualStageOf,
    holdersOf: (parameter, position) =>
      (position === undefined ? holders.get(parameter) : callers[position]) ?? [0],
  };
}

/** Each number once, ascending. */
function inOrder(numbers: readonly number[]): readonly number[] {
  return [...new Set(numbers)].toSorted((a, b) => a - b);
}

/** Calls `used` whenever a parameter's tensor is read. @returns ends it */
function watch(parameter: Parameter, used: () => void): () => void {
  const { tensor } = parameter;
  Object.defineProperty(parameter, "tensor", {
    configurable: true,
    get: () => {
      used();
      return tensor;
    },
  });
  return () => {
    delete (parameter as { tensor?: Tensor }).tensor;
  };
}

function modelError(expected: string, got: unknown, hint = "use fewer stages"): TroupeError {
  return new TroupeError("PIPELINE_MODEL", {
    where: "pipeline",
    expected,
    got: `${got}`,
    hint,
    fields: { got },
  });
}
