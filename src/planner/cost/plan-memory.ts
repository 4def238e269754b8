import { type FlatBlock, type Layout, maxInFlight, pipelineSchedule } from "../../parallel/index.ts";
import type { MeteredDevice } from "../../tensor/index.ts";
import { type ByteScheme, byteScheme, type PlannedPrecision } from "./byte-scheme.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { TraceOptions } from "./model-trace.ts";
import { numParametersOf, ROOT_BLOCK, type StageShare, shareOfStages, tracedCallsOf } from "./rank-share.ts";
import { type Residence, snapshotBytes, stateBytes } from "./state-memory.ts";
import { sum } from "./sum.ts";

/** What a plan assumes beside the layout. */
export interface PlanOptions {
  readonly precision: PlannedPrecision;
  readonly recompute?: boolean;
  readonly sequenceParallel?: boolean;
  /** Which part of masters and optimizer state lies in host memory, 0 to 1. */
  readonly offloadRatio?: number;
  /** Whether the parameters of level-3 blocks are in memory only while they are used. */
  readonly offloadParameters?: boolean;
  /** float32 tensors the optimizer keeps of each parameter; 2 for Adam's moments. */
  readonly stateTensors?: number;
  /** How far gathers run ahead of the computation, in bytes. */
  readonly prefetchBytes?: number;
  /** "device" */
  readonly residence?: Residence;
  /** Whose kernels compute, and so what they take beside what is kept; "cpu" unless said. */
  readonly device?: MeteredDevice;
}

/** Memory of a rank of one pipeline stage, in bytes by kind; each kind at its own most. */
export interface RankMemory {
  readonly stage: number;
  readonly numParameters: number;
  readonly parameters: number;
  readonly master: number;
  readonly optimizer: number;
  /** Reduced gradients, and those on their way there. */
  readonly gradients: number;
  /** Of all micro-batches in flight. */
  readonly activations: number;
  /** Whole parameters of level-3 blocks, gathered for now. */
  readonly gathered: number;
  /**
   * The most that a stretch of forward or backward takes beside what is kept, its own parameters' gradients included;
   * and two batches, the present one and the next.
   */
  readonly workspace: number;
  /** Of these bytes, what lies in host memory or in a file; not part of `peakBytes`. */
  readonly host: number;
  /** What a save copies, until it is written; not part of `peakBytes`. */
  readonly snapshot: number;
  /** The most that is held at once: gradients grow while activations shrink. */
  readonly peakBytes: number;
}

/** How far gathers run ahead unless told otherwise, in bytes: what a run does. */
export const DEFAULT_PREFETCH_BYTES = 2 ** 28;

/**
 * Memory of each kind of rank: one entry a pipeline stage, since all ranks of a stage hold equal shares.
 * @param layout - checked
 */
export function planMemory(facts: ModelFacts, layout: Layout, options: PlanOptions): RankMemory[] {
  return shareOfStages(facts, layout).map((share) => rankMemory(facts, layout, share, options));
}

/** @returns the rank memory that decides whether a layout fits */
export function largestMemory(memories: readonly RankMemory[]): RankMemory {
  return memories.reduce((most, memory) => (memory.peakBytes > most.peakBytes ? memory : most));
}

/** What libtorch takes for cuBLAS on an H100, and keeps. */
const PRODUCTS_BYTES = 32 * 2 ** 20;

/** Batches that a rank has at once. */
const NUM_BATCHES = 2;

function rankMemory(facts: ModelFacts, layout: Layout, share: StageShare, options: PlanOptions): RankMemory {
  const scheme = byteScheme(options.precision, options.stateTensors);
  const residence = options.residence ?? "device";
  const state = stateBytes(share.layouts, scheme, residence);
  const away = options.offloadParameters ? awayBytes(share.layouts, scheme.compute, residence, options) : 0;
  const host = (options.offloadRatio ?? 0) * (state.master + state.optimizer) + away;
  const trace = facts.trace(traceOptions(layout, options));
  const calls = tracedCallsOf(share, trace).map((call) => ({
    ...call,
    keptBytes: call.keptBytes + castBytes(share, call.block, options),
  }));
  const microBatchBytes = sum(calls.map(({ keptBytes }) => keptBytes));
  const batches = NUM_BATCHES * trace.batchBytes + (options.device === "cuda" ? PRODUCTS_BYTES : 0);
  const inFlight = (microBatchBytes * mostInFlight(layout, share.stage)) / layout.numChunks;
  const gathered = residence === "device" ? gatheredBytes(share.layouts, scheme.compute, options) : 0;
  const course = new GradientCourse(share, scheme, state.gradients, layout.accumulation);
  // Before the first backward all micro-batches in flight are kept, of the step's last one less and less.
  const moments: number[] = [];
  let kept = 0;
  for (const { keptBytes, forwardBytes } of calls) {
    kept += keptBytes;
    moments.push(inFlight - microBatchBytes + kept + forwardBytes + course.beforeBackward);
  }
  for (const { block, keptBytes, backwardBytes, handOnBytes } of calls.toReversed()) {
    moments.push(kept + backwardBytes + course.bytes);
    course.handOn(block);
    moments.push(kept + handOnBytes + course.bytes);
    course.leave(block);
    kept -= keptBytes;
  }
  moments.push(course.end);
  return {
    stage: share.stage,
    numParameters: numParametersOf(share),
    parameters: state.parameters,
    master: state.master,
    optimizer: state.optimizer,
    gradients: course.mostBytes,
    activations: inFlight,
    gathered,
    workspace: batches + Math.max(...calls.map((call) => Math.max(call.forwardBytes, call.backwardBytes))),
    host,
    snapshot: snapshotBytes(share.layouts, scheme),
    peakBytes:
      state.parameters + state.master + state.optimizer - host + gathered + batches + Math.max(...moments),
  };
}

/**
 * Bytes of gradients along the last backward of a step: the root's flat gradient, which grows to the end; the block's that is on
 * its way to the shard; what is reduced; and with accumulation the sums of the earlier micro-batches, float32, that have not
 * been handed on.
 */
class GradientCourse {
  readonly #share: StageShare;
  readonly #scheme: ByteScheme;
  readonly #reducedBytes: number;
  readonly #accumulates: boolean;
  readonly #whole: number;
  /** Calls of each block that are still to be walked. */
  readonly #numCalls = new Map<number, number>();
  #doneNumel = 0;
  /** The flat gradients that exist: of the block that was walked last, and of the one before it while its shard sums it. */
  #onItsWay = 0;
  #most = 0;

  constructor(share: StageShare, scheme: ByteScheme, reducedBytes: number, accumulation: number) {
    this.#share = share;
    this.#scheme = scheme;
    this.#reducedBytes = reducedBytes;
    this.#accumulates = accumulation > 1;
    this.#whole = sum(share.layouts.map(({ numel }) => numel));
    for (const block of share.chunks.flat()) this.#numCalls.set(block, (this.#numCalls.get(block) ?? 0) + 1);
  }

  /** While forward runs: sums of the earlier micro-batches. */
  get beforeBackward(): number {
    return this.#accumulates ? FLOAT32_BYTES * this.#whole : 0;
  }

  /** Now. */
  get bytes(): number {
    const { gradient } = this.#scheme;
    const sums = this.#accumulates ? FLOAT32_BYTES * (this.#whole - this.#doneNumel) : 0;
    const reduced = (this.#reducedBytes * this.#doneNumel) / Math.max(1, this.#whole);
    const bytes = gradient * (this.#rootNumel + this.#onItsWay) + sums + reduced;
    this.#most = Math.max(this.#most, bytes);
    return bytes;
  }

  /** When the root is reduced, last, while its own flat gradient still exists. */
  get end(): number {
    const bytes = this.#scheme.gradient * this.#rootNumel + this.#reducedBytes;
    this.#most = Math.max(this.#most, bytes);
    return bytes;
  }

  get mostBytes(): number {
    return this.#most;
  }

  /** The gradients of a call are put into the block's flat one. */
  handOn(position: number | undefined): void {
    if (position !== undefined) this.#onItsWay = this.#numelOf(position);
  }

  /** A call was walked: of the block's first one, its gradient is reduced. */
  leave(position: number | undefined): void {
    if (position === undefined) return;
    const block = this.#share.blocks.indexOf(position) + 1;
    const rest = (this.#numCalls.get(block) ?? 1) - 1;
    this.#numCalls.set(block, rest);
    if (rest === 0) this.#doneNumel += this.#numelOf(position);
  }

  get #rootNumel(): number {
    return this.#share.layouts[ROOT_BLOCK]?.numel ?? 0;
  }

  #numelOf(position: number): number {
    return this.#share.layouts[this.#share.blocks.indexOf(position) + 1]?.numel ?? 0;
  }
}

const FLOAT32_BYTES = 4;
const HALF_BYTES = 2;

/** What autocast makes of a block's parameters in a call: copies that backward multiplies with, where it computes nothing again. */
function castBytes(
  share: StageShare,
  block: number | undefined,
  { precision, recompute }: PlanOptions,
): number {
  if (precision !== "amp" || recompute === true || block === undefined) return 0;
  return HALF_BYTES * (share.layouts[share.blocks.indexOf(block) + 1]?.numel ?? 0);
}

/** @returns how a rank computes a micro-batch under a plan */
export function traceOptions(layout: Layout, options: PlanOptions): TraceOptions {
  const dp = layout.ranks / (layout.tp * layout.pp);
  const { precision, sequenceParallel = false, recompute = false } = options;
  const dtypes = { fp32: "float32", bf16: "bfloat16", fp16: "float16", amp: "bfloat16" } as const;
  return {
    numSamples: layout.batchSize / (dp * layout.accumulation),
    dtype: dtypes[precision],
    tp: layout.tp,
    sequence: sequenceParallel && layout.tp > 1,
    recompute,
    device: options.device ?? "cpu",
  };
}

/** Micro-batches, or micro-batches of a chunk, whose activations a stage holds at once. */
function mostInFlight(layout: Layout, stage: number): number {
  const { pp, schedule, numChunks, accumulation } = layout;
  if (pp === 1) return 1;
  return maxInFlight(
    pipelineSchedule(schedule, stage, { numStages: pp, numMicroBatches: accumulation, numChunks }),
  );
}

/**
 * What of the parameters is away even when the most of them are there. On a device all slices but the root's; what is
 * gathered is counted by itself. In a process the shared copy is what ranks gather: beside the root the block in use, those
 * that the window reaches, and as many that are updated or on their way into the file.
 */
function awayBytes(
  layouts: readonly FlatBlock[],
  elementBytes: number,
  residence: Residence,
  { prefetchBytes = DEFAULT_PREFETCH_BYTES }: PlanOptions,
): number {
  const paged = layouts.filter(({ index, zero }) => zero === 3 && index !== ROOT_BLOCK);
  if (residence === "device") return sum(paged.map(({ sliceNumel }) => sliceNumel * elementBytes));
  const sizes = paged.map(({ numel }) => numel * elementBytes);
  const largest = Math.max(0, ...sizes);
  const ahead = prefetchBytes === 0 ? 0 : Math.max(largest, prefetchBytes);
  return Math.max(0, sum(sizes) - largest - ahead - Math.max(largest, prefetchBytes));
}

/** The root stays gathered; of the blocks, those in use and those that the window reaches. */
function gatheredBytes(layouts: readonly FlatBlock[], elementBytes: number, options: PlanOptions): number {
  const sharded = layouts.filter(({ zero }) => zero === 3).map(({ numel }) => numel * elementBytes);
  const [root = 0, ...blocks] = sharded;
  const window = Math.max(0, ...blocks) + (options.prefetchBytes ?? DEFAULT_PREFETCH_BYTES);
  return root + Math.min(sum(blocks), window);
}
