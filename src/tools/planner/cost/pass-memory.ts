import { type Layout, type PipelineAction, pipelineSchedule } from "../../../compute/parallel/index.ts";
import type { ByteScheme } from "./byte-scheme.ts";
import type { TracedCall } from "./model-trace.ts";
import { ROOT_BLOCK, type StageShare } from "./rank-share.ts";
import { sum } from "./sum.ts";

/** Memory of a stage's rank in one pass of a step, besides its state, in bytes. */
export interface PassMemory {
  readonly action: PipelineAction;
  /** At the moments of the pass with the most memory, in order. */
  readonly momentBytes: readonly number[];
  /** The largest of them. */
  readonly peakBytes: number;
  /** Memory left when it has ended: activations of micro-batches in flight, and sums of gradients. */
  readonly restBytes: number;
  /** Peak of the gradients, separately. */
  readonly gradientBytes: number;
  /** Activations of all micro-batches in flight, this one's included. */
  readonly keptBytes: number;
}

/** Inputs of {@link passMemories}. */
export interface PassCosts {
  /** The stage's calls for a micro-batch, in forward's order. */
  readonly calls: readonly TracedCall[];
  readonly scheme: ByteScheme;
  /** Size of all blocks' gradients as they wait for the update. */
  readonly reducedBytes: number;
}

/**
 * Follows a stage's schedule. Before a backward all micro-batches in flight are kept; during it, that micro-batch's
 * activations shrink while gradients grow.
 * @returns one entry per pass, in order
 */
export function passMemories(layout: Layout, share: StageShare, costs: PassCosts): PassMemory[] {
  const { pp, schedule, chunks: numChunks, accumulation } = layout;
  const shape = { numStages: pp, numMicroBatches: accumulation, numChunks };
  const actions = pipelineSchedule(pp === 1 ? "1f1b" : schedule, share.stage, shape);
  const microBatchBytes = sum(costs.calls.map(({ keptBytes }) => keptBytes));
  const counted = new Map<string, Omit<PassMemory, "action">>();
  let held = 0;
  let addsUp = false;
  return actions.map((action) => {
    const { kind, microBatch } = action;
    if (kind === "forward") held++;
    const pass: Pass = { kind, held, addsUp, handsOn: microBatch === accumulation - 1 };
    const key = JSON.stringify(pass);
    const bytes = counted.get(key) ?? passBytes(share, costs, pass, microBatchBytes, numChunks);
    counted.set(key, bytes);
    if (kind === "backward") {
      held--;
      addsUp = true;
    }
    return { action, ...bytes };
  });
}

/** One pass of a stage in a step. */
interface Pass {
  readonly kind: "forward" | "backward";
  /** Number of passes whose activations are held, this one's included. */
  readonly held: number;
  /** Whether there are sums of earlier micro-batches. */
  readonly addsUp: boolean;
  /** Whether it is the last micro-batch's, whose backward hands gradients on block by block. */
  readonly handsOn: boolean;
}

function passBytes(
  share: StageShare,
  { calls, scheme, reducedBytes }: PassCosts,
  pass: Pass,
  microBatchBytes: number,
  numChunks: number,
): Omit<PassMemory, "action"> {
  const keptBytes = (microBatchBytes * pass.held) / numChunks;
  // Each chunk's pass is counted with the activations of all chunks, since their shares are not known separately.
  const others = Math.max(0, keptBytes - microBatchBytes);
  const course = new GradientCourse(share, scheme, reducedBytes, pass);
  if (pass.kind === "forward") {
    const sums = course.beforeBackward;
    let kept = others + sums;
    const moments = calls.map((call) => {
      kept += call.keptBytes;
      return kept + call.forwardBytes;
    });
    const restBytes = keptBytes + sums;
    return {
      momentBytes: moments,
      peakBytes: Math.max(...moments),
      restBytes,
      gradientBytes: sums,
      keptBytes,
    };
  }
  const moments: number[] = [];
  let kept = others + microBatchBytes;
  for (const { block, keptBytes: own, backwardBytes, handOnBytes } of calls.toReversed()) {
    moments.push(kept + backwardBytes + course.bytes);
    course.handOn(block);
    moments.push(kept + handOnBytes + course.bytes);
    course.leave(block);
    kept -= own;
  }
  moments.push(others + course.end);
  return {
    momentBytes: moments,
    peakBytes: Math.max(...moments),
    restBytes: others + course.rest,
    gradientBytes: course.mostBytes,
    keptBytes,
  };
}

/**
 * Bytes of gradients during one backward: the root's flat gradient, which exists to the end, from the loss on if the stage has
 * the loss, else from its first call, which backward reaches last; the gradient of the block on its way to the shard; the float32
 * sums of this and earlier micro-batches; and for the last micro-batch the reduced gradients in their place.
 */
class GradientCourse {
  readonly #share: StageShare;
  readonly #scheme: ByteScheme;
  readonly #reducedBytes: number;
  readonly #pass: Pass;
  readonly #numel: number;
  /** Calls of each block whose backward is still to come. */
  readonly #numCalls = new Map<number, number>();
  #doneNumel = 0;
  /** Existing flat gradients: of the latest block, and of the one before it while its shard sums it with other ranks'. */
  #onItsWay = 0;
  readonly #isAlone: boolean;
  #most = 0;

  constructor(share: StageShare, scheme: ByteScheme, reducedBytes: number, pass: Pass) {
    this.#share = share;
    this.#scheme = scheme;
    this.#reducedBytes = reducedBytes;
    this.#pass = pass;
    this.#isAlone = share.layouts.every(({ group }) => group.length === 1);
    this.#numel = sum(share.layouts.map(({ numel }) => numel));
    for (const block of share.chunks.flat()) this.#numCalls.set(block, (this.#numCalls.get(block) ?? 0) + 1);
  }

  /** While forward runs: sums of the earlier micro-batches. */
  get beforeBackward(): number {
    return this.#pass.addsUp ? FLOAT32_BYTES * this.#numel : 0;
  }

  /** The present bytes. */
  get bytes(): number {
    const { gradient } = this.#scheme;
    const root = this.#share.ends.includes("last") ? this.#rootNumel : 0;
    const bytes = gradient * (root + this.#onItsWay) + this.#arrivedBytes;
    this.#most = Math.max(this.#most, bytes);
    return bytes;
  }

  /** When the root is reduced, last, while its own flat gradient still exists unless that is the sum. */
  get end(): number {
    const bytes = this.rest + (this.#isAlone ? 0 : this.#scheme.gradient * this.#rootNumel);
    this.#most = Math.max(this.#most, bytes);
    return bytes;
  }

  /** After the pass: the sums, or the reduced gradients. */
  get rest(): number {
    return this.#pass.handsOn ? this.#reducedBytes : FLOAT32_BYTES * this.#numel;
  }

  /** In the shard: sums and reduced gradients. */
  get #arrivedBytes(): number {
    const { addsUp, handsOn } = this.#pass;
    const done = this.#doneNumel;
    if (!handsOn) return FLOAT32_BYTES * (addsUp ? this.#numel : done);
    const sums = addsUp ? FLOAT32_BYTES * (this.#numel - done) : 0;
    return sums + (this.#reducedBytes * done) / Math.max(1, this.#numel);
  }

  get mostBytes(): number {
    return this.#most;
  }

  /** Puts the gradients of a call into the block's flat one. */
  handOn(position: number | undefined): void {
    if (position !== undefined) this.#onItsWay = this.#numelOf(position);
  }

  /** Ends a call's backward; after the block's first call, its gradient is reduced. */
  leave(position: number | undefined): void {
    if (position === undefined) return;
    const block = this.#share.blocks.indexOf(position) + 1;
    const rest = (this.#numCalls.get(block) ?? 1) - 1;
    this.#numCalls.set(block, rest);
    if (rest > 0) return;
    this.#doneNumel += this.#numelOf(position);
    // A gradient that is not handed on has been added to the sums, or starts them; one that is not summed has arrived.
    if (!this.#pass.handsOn || this.#isAlone) this.#onItsWay = 0;
  }

  get #rootNumel(): number {
    return this.#share.layouts[ROOT_BLOCK]?.numel ?? 0;
  }

  #numelOf(position: number): number {
    return this.#share.layouts[this.#share.blocks.indexOf(position) + 1]?.numel ?? 0;
  }
}

const FLOAT32_BYTES = 4;
