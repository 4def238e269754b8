import { type FlatBlock, type Layout, maxInFlight, pipelineSchedule } from "../parallel/index.ts";
import {
  type ActivationOptions,
  backwardWorkspaceBytes,
  keptLayerBytes,
  lossWorkspaceBytes,
  outerActivationBytes,
} from "./activation-memory.ts";
import { type ByteScheme, byteScheme, type PlannedPrecision } from "./byte-scheme.ts";
import type { ModelFacts } from "./model-facts.ts";
import { numParametersOf, ROOT_BLOCK, type StageShare, shareOfStages } from "./rank-share.ts";
import { type Residence, snapshotBytes, stateBytes } from "./state-memory.ts";
import { sum } from "./sum.ts";

/** What a plan assumes beside the layout. */
export interface PlanOptions {
  readonly precision: PlannedPrecision;
  /** Positions of one sample; the model's longest context unless told otherwise. */
  readonly sequenceLength?: number;
  readonly recompute?: boolean;
  readonly sequenceParallel?: boolean;
  readonly dropout?: boolean;
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
  /** Buffers of the loss, or of a block's backward and what it computes again. */
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

function rankMemory(facts: ModelFacts, layout: Layout, share: StageShare, options: PlanOptions): RankMemory {
  const { shape } = facts;
  const scheme = byteScheme(options.precision, options.stateTensors);
  const residence = options.residence ?? "device";
  const state = stateBytes(share.layouts, scheme, residence);
  const away = options.offloadParameters ? awayBytes(share.layouts, scheme.compute, residence, options) : 0;
  const host = (options.offloadRatio ?? 0) * (state.master + state.optimizer) + away;
  const activation = activationOptions(facts, layout, options);
  const layerBytes = keptLayerBytes(shape, activation);
  const microBatchBytes =
    share.blocks.length * layerBytes + outerActivationBytes(shape, share.ends, activation);
  const activations = (microBatchBytes * mostInFlight(layout, share.stage)) / layout.numChunks;
  const gathered = residence === "device" ? gatheredBytes(share.layouts, scheme.compute, options) : 0;
  const workspace = Math.max(
    backwardWorkspaceBytes(shape, activation),
    share.ends.includes("last") ? lossWorkspaceBytes(shape, activation) : 0,
  );
  const gradients = gradientCourse(share.layouts, scheme, state.gradients, layout.accumulation);
  const kept = gradients.map((bytes, numDone) => {
    const rest = numDone === 0 ? activations : Math.max(0, microBatchBytes - numDone * layerBytes);
    return bytes + rest + (numDone === share.blocks.length ? 0 : workspace);
  });
  return {
    stage: share.stage,
    numParameters: numParametersOf(share),
    parameters: state.parameters,
    master: state.master,
    optimizer: state.optimizer,
    gradients: Math.max(...gradients),
    activations,
    gathered,
    workspace,
    host,
    snapshot: snapshotBytes(share.layouts, scheme),
    peakBytes: state.parameters + state.master + state.optimizer - host + gathered + Math.max(...kept),
  };
}

/**
 * Bytes of gradients along the last backward of a step, by how many blocks it has done: the root's flat gradient, which
 * grows to the end; the block's on its way to the shard; what is reduced; and with accumulation the sums of the earlier
 * micro-batches, float32, that have not been handed on.
 */
function gradientCourse(
  layouts: readonly FlatBlock[],
  scheme: ByteScheme,
  reducedBytes: number,
  accumulation: number,
): number[] {
  const [root = 0, ...blocks] = layouts.map(({ numel }) => numel);
  const whole = root + sum(blocks);
  const courses: number[] = [];
  for (let numDone = 0; numDone <= blocks.length; numDone++) {
    const done = sum(blocks.slice(blocks.length - numDone));
    const onItsWay = numDone === 0 && accumulation === 1 ? 0 : Math.max(0, ...blocks);
    const sums = accumulation > 1 ? 4 * (whole - done) : 0;
    // The root is reduced last, when its own flat gradient still exists.
    const reduced = numDone === blocks.length ? reducedBytes : (reducedBytes * done) / whole;
    courses.push(scheme.gradient * (root + onItsWay) + sums + reduced);
  }
  return courses;
}

/** @returns what a micro-batch of a rank is under a plan */
export function activationOptions(
  facts: ModelFacts,
  layout: Layout,
  options: PlanOptions,
): ActivationOptions {
  const dp = layout.ranks / (layout.tp * layout.pp);
  const microBatchSize = layout.batchSize / (dp * layout.accumulation);
  return {
    numTokens: microBatchSize * (options.sequenceLength ?? facts.shape.numPositions),
    elementBytes: options.precision === "fp32" ? 4 : 2,
    tp: layout.tp,
    sequenceParallel: options.sequenceParallel ?? false,
    recompute: options.recompute ?? false,
    dropout: options.dropout ?? false,
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
