import {
  type FlatBlock,
  type Layout,
  layoutBlock,
  parseZeroLevel,
  replicas,
  stageOfBlocks,
} from "../parallel/index.ts";
import { numelOf } from "../tensor/index.ts";
import type { DeclaredParameter, ModelFacts, RootUse } from "./model-facts.ts";
import { sum } from "./sum.ts";

/** The root's place among a stage's flat blocks, as the planner lays them out. */
export const ROOT_BLOCK = 0;

/** What the ranks of one pipeline stage hold; all of them alike. */
export interface StageShare {
  readonly stage: number;
  /** Positions of its blocks along the model. */
  readonly blocks: readonly number[];
  /** The flat blocks of one of its ranks, the root first. */
  readonly layouts: readonly FlatBlock[];
  /** Which of the flat blocks are each chunk's, in forward order. */
  readonly chunks: readonly (readonly number[])[];
  /** Whether it has the embedding, and whether it has the loss. */
  readonly ends: readonly RootUse[];
}

/** Cuts a model into what one rank of each stage holds: by stage, by tensor-parallel part, by flat block. */
export function shareOfStages(facts: ModelFacts, layout: Layout): StageShare[] {
  const { pp, tp, ranks, numChunks } = layout;
  const zero = parseZeroLevel(layout.zero);
  const numReplicas = ranks / (pp * tp);
  const costs = facts.blocks.map(({ parameters }) => sum(parameters.map(({ shape }) => numelOf(shape))));
  const virtualStages = stageOfBlocks(costs, pp * numChunks);
  return Array.from({ length: pp }, (_, stage) => {
    const blocks = facts.blocks.flatMap((_, index) =>
      (virtualStages[index] as number) % pp === stage ? [index] : [],
    );
    const ends: RootUse[] = [
      ...(stage === 0 ? ["first" as const] : []),
      ...(stage === pp - 1 ? ["last" as const] : []),
    ];
    const root = facts.root
      .filter(({ uses }) => uses.some((use) => ends.includes(use)))
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
      blocks.flatMap((block, index) =>
        Math.floor((virtualStages[block] as number) / pp) === chunk ? [index + 1] : [],
      ),
    );
    return { stage, blocks, layouts, chunks, ends };
  });
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
