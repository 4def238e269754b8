import * as parallel from "../../../compute/parallel/index.ts";
import { ROOT_BLOCK, type StageShare } from "../cost/rank-share.ts";

/** A part of the computation: a layer, or the part before or after all layers. */
export type Part = "embedding" | "layer" | "head";

/** One operation of a rank; blocks are named by their index among its flat blocks. Plain data. */
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
      /** The stage that it is sent to or received from. */
      readonly peer: number;
      /** Name of the data; the same on both sides. */
      readonly what: string;
    };

/** Inputs of {@link rankProgram}. */
export interface ProgramShape {
  readonly layout: parallel.Layout;
  readonly share: StageShare;
  /** Bytes of each gathered block, by index. */
  readonly gatheredBytes: readonly number[];
  /** How far gathers run ahead, in bytes. */
  readonly prefetchBytes: number;
  readonly numSteps: number;
}

/**
 * Returns the operations of a stage's rank, step by step, in the product's own order: the schedule is
 * `pipelineSchedule`'s, and gathers are started, awaited and released by the `Prefetcher` that ranks run. All of its
 * decisions depend on the order of needs and none on time, so one recording holds at any speed.
 */
export function rankProgram(shape: ProgramShape): readonly (readonly Operation[])[] {
  const { layout, share, gatheredBytes, prefetchBytes, numSteps } = shape;
  const operations: Operation[] = [];
  const prefetcher = new parallel.Prefetcher<number>(
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

function actionsOf(layout: parallel.Layout, stage: number): readonly parallel.PipelineAction[] {
  const { pp, schedule, accumulation, chunks: numChunks } = layout;
  if (pp > 1) {
    const shape = { numStages: pp, numMicroBatches: accumulation, numChunks };
    return parallel.pipelineSchedule(schedule, stage, shape);
  }
  return Array.from({ length: accumulation }, (_, microBatch) => microBatch).flatMap((microBatch) => [
    { kind: "forward" as const, microBatch, chunk: 0 },
    { kind: "backward" as const, microBatch, chunk: 0 },
  ]);
}

/** Goes through a stage's blocks like the block engine and its tape. */
class StageWalk {
  readonly #shape: ProgramShape;
  readonly #prefetcher: parallel.Prefetcher<number>;
  readonly #operations: Operation[];
  /** Remaining backwards of each block in a step: after the last its gradient is complete. */
  readonly #rest = new Map<number, number>();

  constructor(shape: ProgramShape, prefetcher: parallel.Prefetcher<number>, operations: Operation[]) {
    this.#shape = shape;
    this.#prefetcher = prefetcher;
    this.#operations = operations;
  }

  walk({ kind, microBatch, chunk }: parallel.PipelineAction): void {
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

  /** Counts a backward of a block. @returns whether it was the step's last */
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

/** Sends forward to the next place along the model, backward to the one before; places alternate between the stages. */
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
