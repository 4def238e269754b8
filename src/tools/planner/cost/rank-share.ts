import * as parallel from "../../../compute/parallel/index.ts";
import { numelOf } from "../../../compute/tensor/index.ts";
import type { DeclaredParameter, ModelFacts } from "./model-facts.ts";
import type { ModelTrace, TracedCall } from "./model-trace.ts";
import { sum } from "./sum.ts";

/** The root's index among a stage's flat blocks, as the planner lays them out. */
export const ROOT_BLOCK = 0;

/** An end of the model: the computation before the first block, or the loss. */
export type ModelEnd = "first" | "last";

/** The share of one pipeline stage; the same for all its ranks. */
export interface StageShare {
  readonly stage: number;
  /** Indices of its blocks in the model, in order. */
  readonly blocks: readonly number[];
  /** Indices of its calls among the model's calls of blocks in forward. */
  readonly calls: readonly number[];
  /** The flat blocks of one of its ranks, the root first. */
  readonly layouts: readonly parallel.FlatBlock[];
  /** Flat blocks that each chunk calls, in forward order. */
  readonly chunks: readonly (readonly number[])[];
  /** Whether it has the embedding, and whether it has the loss. */
  readonly ends: readonly ModelEnd[];
}

/** Cuts a model into the share of one rank of each stage: by stage, by tensor-parallel part, by flat block. */
export function shareOfStages(facts: ModelFacts, layout: parallel.Layout): StageShare[] {
  const { pp, tp, ranks, chunks: numChunks } = layout;
  const zero = parallel.parseZeroLevel(layout.zero);
  const numReplicas = ranks / (pp * tp);
  const sizes = facts.blocks.map(({ parameters }) => sum(parameters.map(({ shape }) => numelOf(shape))));
  const costs = facts.calls.map((position) => sizes[position] as number);
  const { virtualStageOf, stageAfter } = parallel.dealCalls(costs, pp * numChunks);
  return Array.from({ length: pp }, (_, stage) => {
    const isHere = (virtualStage = 0) => virtualStage % pp === stage;
    const calls = [...facts.calls.keys()].filter((call) => isHere(virtualStageOf[call]));
    const blocks = [...new Set(calls.map((call) => facts.calls[call] as number))].toSorted((a, b) => a - b);
    const ends: ModelEnd[] = [
      ...(stage === 0 ? ["first" as const] : []),
      ...(stage === pp - 1 ? ["last" as const] : []),
    ];
    const root = facts.root
      // Unused parameters stay on stage 0.
      .filter(({ uses }) =>
        uses.length === 0 ? stage === 0 : uses.some((numCalls) => isHere(stageAfter(numCalls))),
      )
      .map(({ parameter }) => parameter);
    const units = [
      { name: "root", parameters: root },
      ...blocks.map((index) => facts.blocks[index] as ModelFacts["blocks"][number]),
    ];
    const layouts = units.map(({ name, parameters }, index) =>
      parallel.layoutBlock(
        index,
        name,
        zero,
        parameters.map((parameter) => cut(parameter, tp)),
        parallel.replicas(numReplicas),
      ),
    );
    const chunks = Array.from({ length: numChunks }, (_, chunk) =>
      calls.flatMap((call) =>
        Math.floor((virtualStageOf[call] as number) / pp) === chunk
          ? [blocks.indexOf(facts.calls[call] as number) + 1]
          : [],
      ),
    );
    return { stage, blocks, calls, layouts, chunks, ends };
  });
}

/** Returns the calls of a stage's ranks for a micro-batch, in forward's order. */
export function tracedCallsOf(share: StageShare, trace: ModelTrace): TracedCall[] {
  const calls = share.calls.map((call) => trace.calls[call] as TracedCall);
  return share.ends.includes("last") ? [...calls, trace.calls.at(-1) as TracedCall] : calls;
}

/** Returns the number of parameters on one rank of a stage, without padding. */
export function numParametersOf(share: StageShare): number {
  return sum(share.layouts.flatMap(({ parameters }) => parameters.map(({ numel }) => numel)));
}

/** One rank's part of a parameter split over `tp` ranks; a vocabulary that does not divide is padded. */
function cut(parameter: DeclaredParameter, tp: number): DeclaredParameter {
  const { shape, tpDim } = parameter;
  if (tpDim === undefined) return parameter;
  return { ...parameter, shape: shape.map((size, dim) => (dim === tpDim ? Math.ceil(size / tp) : size)) };
}
