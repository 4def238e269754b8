import type { Layout } from "../../../compute/parallel/index.ts";
import type { ByteScheme } from "./byte-scheme.ts";
import { type Cluster, type Link, linkOf } from "./cluster.ts";
import { type ModelTrace, NO_WORK, sumOfWork, type TracedCall, type Work } from "./model-trace.ts";
import { ROOT_BLOCK, type StageShare, tracedCallsOf } from "./rank-share.ts";
import { sum } from "./sum.ts";

/** Seconds and bytes of one flat block on one rank. */
export interface BlockCost {
  /** One call for one micro-batch, with its tensor-parallel collectives. */
  readonly forwardS: number;
  readonly backwardS: number;
  /** Time in tensor-parallel collectives, among these. */
  readonly forwardTpS: number;
  readonly backwardTpS: number;
  /** Size of the gathered parameters. */
  readonly gatheredBytes: number;
  /** Size of the gradient as it is reduced. */
  readonly gradientBytes: number;
  readonly updateS: number;
}

/** Costs of the ranks of one stage; block 0 is the root, whose computation is that of the model's end. */
export interface StageCosts {
  readonly blocks: readonly BlockCost[];
  /** Size of a micro-batch's activations from one stage to the next. */
  readonly boundaryBytes: number;
}

/** Computes the costs of a stage's ranks. */
export function stageCosts(
  trace: ModelTrace,
  layout: Layout,
  share: StageShare,
  cluster: Cluster,
  scheme: ByteScheme,
): StageCosts {
  const { tp } = layout;
  const tpRanks = Array.from({ length: tp }, (_, rank) => rank);
  const price = priceOf(cluster, linkOf(cluster, tpRanks), tp);
  const calls = tracedCallsOf(share, trace);
  const blocks = share.layouts.map((flat, index): BlockCost => {
    const position = index === ROOT_BLOCK ? undefined : share.blocks[index - 1];
    const own = calls.filter(({ block }) => block === position);
    const forward = price(meanOf(own, (call) => call.forward));
    const backward = price(meanOf(own, (call) => call.backward));
    const owned = flat.zero === 0 ? flat.numel : flat.sliceNumel;
    return {
      forwardS: forward.seconds,
      backwardS: backward.seconds,
      forwardTpS: forward.tpSeconds,
      backwardTpS: backward.tpSeconds,
      gatheredBytes: flat.numel * scheme.compute,
      gradientBytes: flat.numel * scheme.gradient,
      updateS: (owned * updateBytes(scheme)) / cluster.memoryBytesPerSecond,
    };
  });
  // A stage's output is the next one's input; for the last stage, its own input is taken.
  const last = share.calls.at(-1) ?? 0;
  const leaving = share.ends.includes("last") ? (share.calls[0] ?? 0) : last + 1;
  // The model's end alone has the same input size as the last block.
  const entered = trace.calls[Math.min(leaving, trace.calls.length - 2)];
  return { blocks, boundaryBytes: entered?.enteringBytes ?? 0 };
}

/** Prices work: products at their rate, every tensor written once and read once, collectives one after the other. */
function priceOf(cluster: Cluster, link: Link, tp: number) {
  return ({ flops, narrowFlops, madeBytes, ringBytes, numRings }: Work) => {
    const productsS =
      narrowFlops / cluster.flopsPerSecond + (flops - narrowFlops) / cluster.float32FlopsPerSecond;
    const passesS = madeBytes.map((bytes, size) => (2 * bytes) / passRate(cluster, 2 ** size));
    const computeS = productsS + sum(passesS);
    const hopsS = (tp - 1) * numRings * link.latencyS;
    const tpSeconds = hopsS + (((tp - 1) / tp) * ringBytes) / link.bytesPerSecond;
    return { seconds: computeS + tpSeconds, tpSeconds };
  };
}

/** A tensor is still in the cache when it is read if its input, of the same size, fits next to it. */
function passRate({ cache, memoryBytesPerSecond }: Cluster, sizeBytes: number): number {
  return 2 * sizeBytes <= cache.bytes ? cache.bytesPerSecond : memoryBytesPerSecond;
}

/** The mean work of one block's calls. */
function meanOf(calls: readonly TracedCall[], of: (call: TracedCall) => Work): Work {
  const all = calls.map(of).reduce((total, work) => sumOfWork(total, work), NO_WORK);
  return sumOfWork(NO_WORK, all, 1 / Math.max(1, calls.length));
}

/** Bytes of an update: reads and writes masters and state, reads the gradient, writes the parameters for the computation. */
function updateBytes(scheme: ByteScheme): number {
  const master = scheme.master || scheme.compute;
  return 2 * (master + scheme.optimizer) + scheme.reducedGradient + (scheme.master > 0 ? scheme.compute : 0);
}
