import {
  dealCalls,
  type FlatBlock,
  type Layout,
  layoutBlock,
  parseZeroLevel,
  replicas,
} from "../../../compute/parallel/index.ts";
import { numelOf } from "../../../compute/tensor/index.ts";
import type { DeclaredParameter, ModelFacts } from "./model-facts.ts";
import type { ModelTrace, TracedCall } from "./model-trace.ts";
import { sum } from "./sum.ts";

/** The root's place among a stage's flat blocks, as the planner lays them out. */
export const ROOT_BLOCK = 0;

/** Which end of the model a stage has: what is computed before the first block, or the loss. */
export type ModelEnd = "first" | "last";

/** What the ranks of one pipeline stage hold; all of them alike. */
export interface StageShare {
  readonly stage: number;
  /** Positions of its blocks in the model, in order. */
  readonly blocks: readonly number[];
  /** Which of the model's calls of blocks it makes, by their places along forward. */
  readonly calls: readonly number[];
  /** The flat blocks of one of its ranks, the root first. */
  readonly layouts: readonly FlatBlock[];
  /** Which of the flat blocks each chunk calls, in forward order. */
  readonly chunks: readonly (readonly number[])[];
  /** Whether it has the embedding, and whether it has the loss. */
  readonly ends: readonly ModelEnd[];
}

/** Cuts a model into what one rank of each stage holds: by stage, by tensor-parallel part, by flat block. */
export function shareOfStages(facts: ModelFacts, layout: Layout): StageShare[] {
  const { pp, tp, ranks, chunks: numChunks } = layout;
  const zero = parseZeroLevel(layout.zero);
  const numReplicas = ranks / (pp * tp);
  const sizes = facts.blocks.map(({ parameters }) => sum(parameters.map(({ shape }) => numelOf(shape))));
  const costs = facts.calls.map((position) => sizes[position] as number);
  const { virtualStageOf, stageAfter } = dealCalls(costs, pp * numChunks);
  return Array.from({ length: pp }, (_, stage) => {
    const isHere = (virtualStage = 0) => virtualStage % pp === stage;
    const calls = [...facts.calls.keys()].filter((call) => isHere(virtualStageOf[call]));
    const blocks = [...new Set(calls.map((call) => facts.calls[call] as number))].toSorted((a, b) => a - b);
    const ends: ModelEnd[] = [
      ...(stage === 0 ? ["first" as const] : []),
      ...(stage === pp - 1 ? ["last" as const] : []),
    ];
    const root = facts.root
      // What nothing uses is the first stage's: somebody must keep it.
      .filter(({ uses }) =>
        uses.length === 0 ? stage === 0 : uses.some((numCalls) => isHere(stageAfter(numCalls))),
      )
      .map(({ parameter }) => parameter);
    const units = [
      { name: "root", parameters: root },
      ...blocks.map((index) => facts.blocks[index] as ModelFacts["blocks"][number]),
    ];
    const layouts = units.map(({ name, parameters }, index) =>
      layoutBlock(
        index,
        name,
        zero,
        parameters.map((parameter) => cut(parameter, tp)),
        replicas(numReplicas),
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

/** @returns what the ranks of a stage compute of a micro-batch, in forward's order */
export function tracedCallsOf(share: StageShare, trace: ModelTrace): TracedCall[] {
  const calls = share.calls.map((call) => trace.calls[call] as TracedCall);
  return share.ends.includes("last") ? [...calls, trace.calls.at(-1) as TracedCall] : calls;
}

/** @returns parameters on one rank of a stage, without padding */
export function numParametersOf(share: StageShare): number {
  return sum(share.layouts.flatMap(({ parameters }) => parameters.map(({ numel }) => numel)));
}

/** The part of a parameter that one of `tp` ranks holds; a vocabulary that does not divide is padded. */
function cut(parameter: DeclaredParameter, tp: number): DeclaredParameter {
  const { shape, tpDim } = parameter;
  if (tpDim === undefined) return parameter;
  return { ...parameter, shape: shape.map((size, dim) => (dim === tpDim ? Math.ceil(size / tp) : size)) };
}
