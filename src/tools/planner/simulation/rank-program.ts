import {
  type Layout,
  type PipelineAction,
  Prefetcher,
  pipelineSchedule,
} from "../../../compute/parallel/index.ts";
import { ROOT_BLOCK, type StageShare } from "../cost/rank-share.ts";

/** What is computed: a layer, or what lies before and after all of them. */
export type Part = "embedding" | "layer" | "head";

/** One thing that a rank does; blocks are named by their index among its flat blocks. Plain data. */
export type Operation =
  | { readonly kind: "gather"; readonly block: number }
  | { readonly kind: "await"; readonly block: number }
  | { readonly kind: "release"; readonly block: number }
  | {
      readonly kind: "compute";
      readonly pass: "forward" | "backward";
      readonly part: Part;
      readonly block: number;
      readonly microBatch: number;
    }
  | { readonly kind: "reduce"; readonly block: number }
  | {
      readonly kind: "send" | "receive";
      readonly pass: "forward" | "backward";
      /** Of the stage that it is sent to or received from. */
      readonly peer: number;
      /** What crosses; the same on both sides. */
      readonly what: string;
    };

/** What a program is made for. */
export interface ProgramShape {
  readonly layout: Layout;
  readonly share: StageShare;
  /** Bytes of each gathered block, by index. */
  readonly gatheredBytes: readonly number[];
  /** How far gathers run ahead, in bytes. */
  readonly prefetchBytes: number;
  readonly numSteps: number;
}

/**
 * What a rank of a stage does, step by step. Its order is the product's own: the schedule is `pipelineSchedule`'s, and
 * gathers are started, waited for and given up by the `Prefetcher` that the ranks run, of which every decision follows
 * from the order of needs and none from time. So what it decided once, in a recording, holds at any speed.
 */
export function rankProgram(shape: ProgramShape): readonly (readonly Operation[])[] {
  const { layout, share, gatheredBytes, prefetchBytes, numSteps } = shape;
  const operations: Operation[] = [];
  const prefetcher = new Prefetcher<number>(
    {
      start: (block) => {
        operations.push({ kind: "gather", block });
        return block;
      },
      wait: (block) => void operations.push({ kind: "await", block }),
      release: (block) => void operations.push({ kind: "release", block }),
    },
    {
      sizeBytes: gatheredBytes,
      resident: share.layouts.map(({ index, zero }) => index === ROOT_BLOCK || zero < 3),
      windowBytes: prefetchBytes,
    },
  );
  const stage = new StageWalk(shape, prefetcher, operations);
  const actions = actionsOf(layout, share.stage);
  return Array.from({ length: numSteps }, () => {
    prefetcher.begin("step");
    for (const action of actions) stage.walk(action);
    if (share.ends.length > 0) operations.push({ kind: "reduce", block: ROOT_BLOCK });
    return operations.splice(0);
  });
}

function actionsOf(layout: Layout, stage: number): readonly PipelineAction[] {
  const { pp, schedule, accumulation, chunks: numChunks } = layout;
  if (pp > 1) {
    const shape = { numStages: pp, numMicroBatches: accumulation, numChunks };
    return pipelineSchedule(schedule, stage, shape);
  }
  return Array.from({ length: accumulation }, (_, microBatch) => microBatch).flatMap((microBatch) => [
    { kind: "forward" as const, microBatch, chunk: 0 },
    { kind: "backward" as const, microBatch, chunk: 0 },
  ]);
}

/** Walks a stage's blocks as the block engine and its tape do. */
class StageWalk {
  readonly #shape: ProgramShape;
  readonly #prefetcher: Prefetcher<number>;
  readonly #operations: Operation[];
  /** Backwards of each block that a step still makes: with the last of them its gradient is complete. */
  readonly #rest = new Map<number, number>();

  constructor(shape: ProgramShape, prefetcher: Prefetcher<number>, operations: Operation[]) {
    this.#shape = shape;
    this.#prefetcher = prefetcher;
    this.#operations = operations;
  }

  walk({ kind, microBatch, chunk }: PipelineAction): void {
    const { pp, chunks } = this.#shape.layout;
    const place = chunk * pp + this.#shape.share.stage;
    const last = pp * chunks - 1;
    const blocks = this.#shape.share.chunks[chunk] ?? [];
    const root = (part: Part) => {
      this.#prefetcher.need(ROOT_BLOCK);
      this.#operations.push({ kind: "compute", pass: kind, part, block: ROOT_BLOCK, microBatch });
    };
    const across = (what: "send" | "receive") =>
      this.#operations.push(transfer(what, kind, microBatch, place, pp));
    if (kind === "forward") {
      place > 0 ? across("receive") : root("embedding");
      for (const block of blocks) this.#layer(kind, block, microBatch);
      place < last ? across("send") : root("head");
      return;
    }
    place < last ? across("receive") : root("head");
    for (const block of blocks.toReversed()) {
      this.#layer(kind, block, microBatch);
      if (this.#isLast(block)) this.#operations.push({ kind: "reduce", block });
    }
    place > 0 ? across("send") : root("embedding");
  }

  /** Counts a backward of a block. @returns whether the step makes no more of it */
  #isLast(block: number): boolean {
    const { layout, share } = this.#shape;
    const all = layout.accumulation * share.chunks.flat().filter((called) => called === block).length;
    const rest = (this.#rest.get(block) ?? all) - 1;
    this.#rest.set(block, rest === 0 ? all : rest);
    return rest === 0;
  }

  #layer(pass: "forward" | "backward", block: number, microBatch: number): void {
    this.#prefetcher.need(block);
    this.#operations.push({ kind: "compute", pass, part: "layer", block, microBatch });
    this.#prefetcher.release(block);
  }
}

/** Forward goes to the next place along the model, backward to the one before; places go round the stages. */
function transfer(
  kind: "send" | "receive",
  pass: "forward" | "backward",
  microBatch: number,
  place: number,
  numStages: number,
): Operation {
  const isUp = (kind === "send") === (pass === "forward");
  const other = isUp ? place + 1 : place - 1;
  const to = kind === "send" ? other : place;
  return { kind, pass, peer: other % numStages, what: `${pass} of micro-batch ${microBatch} at place ${to}` };
}
