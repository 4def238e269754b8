import type { FlatBlock, Layout } from "../../../compute/parallel/index.ts";
import type { MeteredDevice } from "../../../compute/tensor/index.ts";
import { byteScheme, type PlannedPrecision } from "./byte-scheme.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { TraceOptions } from "./model-trace.ts";
import { type PassMemory, passMemories } from "./pass-memory.ts";
import { numParametersOf, ROOT_BLOCK, type StageShare, shareOfStages, tracedCallsOf } from "./rank-share.ts";
import { type Residence, snapshotBytes, stateBytes } from "./state-memory.ts";
import { sum } from "./sum.ts";

/** Options of a plan, besides the layout. */
export interface PlanOptions {
  readonly precision: PlannedPrecision;
  readonly recompute?: boolean;
  readonly sequenceParallel?: boolean;
  /** Share of masters and optimizer state in host memory, 0 to 1. */
  readonly offloadRatio?: number;
  /** Whether the parameters of level-3 blocks are paged. */
  readonly offloadParameters?: boolean;
  /** float32 tensors of optimizer state per parameter; 2 for Adam's moments. */
  readonly stateTensors?: number;
  /** How far gathers run ahead of the computation, in bytes. */
  readonly prefetchBytes?: number;
  /** Default: "device". */
  readonly residence?: Residence;
  /** The device whose kernels compute, which determines their workspace. Default: "cpu". */
  readonly device?: MeteredDevice;
}

/** Memory of a rank of one pipeline stage, in bytes by kind; each kind at its own peak. */
export interface RankMemory {
  readonly stage: number;
  readonly numParameters: number;
  readonly parameters: number;
  readonly master: number;
  readonly optimizer: number;
  /** Reduced gradients, and those on their way there. */
  readonly gradients: number;
  /** Activations of all micro-batches in flight. */
  readonly activations: number;
  /** Gathered parameters of level-3 blocks. */
  readonly gathered: number;
  /** Peak of a section of forward or backward besides what is kept, with its own gradients; and the present and next batch. */
  readonly workspace: number;
  /** Bytes of these kinds in host memory or in a file; not part of `peakBytes`. */
  readonly host: number;
  /** Copies for a save, until they are written; not part of `peakBytes`. */
  readonly snapshot: number;
  /** Peak of all kinds together: gradients grow while activations shrink. */
  readonly peakBytes: number;
  /** Passes of a step, in order. */
  readonly passes: readonly PassMemory[];
}

/** How far gathers run ahead by default, in bytes; the same as in a run. */
export const DEFAULT_PREFETCH_BYTES = 2 ** 28;

/** Computes the memory of each stage's ranks, which have equal shares. @param layout - checked */
export function planMemory(facts: ModelFacts, layout: Layout, options: PlanOptions): RankMemory[] {
  return shareOfStages(facts, layout).map((share) => rankMemory(facts, layout, share, options));
}

/** Returns the memory of the rank that decides whether a layout fits. */
export function largestMemory(memories: readonly RankMemory[]): RankMemory {
  return memories.reduce((most, memory) => (memory.peakBytes > most.peakBytes ? memory : most));
}

/** Memory that libtorch allocates for cuBLAS on an H100 and keeps. */
const PRODUCTS_BYTES = 32 * 2 ** 20;

/** Batches that a rank has at once. */
const NUM_BATCHES = 2;

function rankMemory(facts: ModelFacts, layout: Layout, share: StageShare, options: PlanOptions): RankMemory {
  const scheme = byteScheme(options.precision, options.stateTensors, layout.accumulation);
  const residence = options.residence ?? "device";
  const state = stateBytes(share.layouts, scheme, residence);
  const away = options.offloadParameters ? awayBytes(share.layouts, scheme.compute, residence, options) : 0;
  const host = (options.offloadRatio ?? 0) * (state.master + state.optimizer) + away;
  const trace = facts.trace(traceOptions(layout, options));
  const calls = tracedCallsOf(share, trace);
  const batches = NUM_BATCHES * trace.batchBytes + (options.device === "cuda" ? PRODUCTS_BYTES : 0);
  const gathered = residence === "device" ? gatheredBytes(share.layouts, scheme.compute, options) : 0;
  const passes = passMemories(layout, share, { calls, scheme, reducedBytes: state.gradients });
  const most = (of: (pass: PassMemory) => number) => Math.max(...passes.map(of));
  return {
    stage: share.stage,
    numParameters: numParametersOf(share),
    parameters: state.parameters,
    master: state.master,
    optimizer: state.optimizer,
    gradients: most(({ gradientBytes }) => gradientBytes),
    activations: most(({ keptBytes }) => keptBytes),
    gathered,
    workspace: batches + Math.max(...calls.map((call) => Math.max(call.forwardBytes, call.backwardBytes))),
    host,
    snapshot: snapshotBytes(share.layouts, scheme),
    peakBytes:
      state.parameters +
      state.master +
      state.optimizer -
      host +
      gathered +
      batches +
      most(({ peakBytes }) => peakBytes),
    passes,
  };
}

/** Returns how a rank computes a micro-batch under a plan. */
export function traceOptions(layout: Layout, options: PlanOptions): TraceOptions {
  const dp = layout.ranks / (layout.tp * layout.pp);
  const { precision, sequenceParallel = false, recompute = false } = options;
  // bfloat16 and float16 take the same memory under autocast.
  const dtypes = { fp32: "float32", bf16: "bfloat16", fp16: "float16", amp: "float32" } as const;
  return {
    numSamples: layout.batchSize / (dp * layout.accumulation),
    dtype: dtypes[precision],
    autocast: precision === "amp" ? "bfloat16" : undefined,
    tp: layout.tp,
    sequenceParallel: sequenceParallel && layout.tp > 1,
    recompute,
    device: options.device ?? "cpu",
  };
}

/**
 * Parameters that are always away, even at the peak. On a device all slices but the root's; gathered parameters are
 * counted separately. In a process ranks gather into the shared copy: besides the root, it holds the block in use,
 * those within the window, and as many that are being updated or written to the file.
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

/** The root stays gathered; of the blocks, those in use and those within the window. */
function gatheredBytes(layouts: readonly FlatBlock[], elementBytes: number, options: PlanOptions): number {
  const sharded = layouts.filter(({ zero }) => zero === 3).map(({ numel }) => numel * elementBytes);
  const [root = 0, ...blocks] = sharded;
  const window = Math.max(0, ...blocks) + (options.prefetchBytes ?? DEFAULT_PREFETCH_BYTES);
  return root + Math.min(sum(blocks), window);
}
