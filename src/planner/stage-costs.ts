import type { Layout } from "../parallel/index.ts";
import { numelOf } from "../tensor/index.ts";
import { type ActivationOptions, layerActivationBytes } from "./activation-memory.ts";
import type { ByteScheme } from "./byte-scheme.ts";
import { allReduceSeconds, type Cluster, linkOf } from "./cluster.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { StageShare } from "./rank-share.ts";
import { sum } from "./sum.ts";

/** Seconds and bytes of one flat block on one rank. */
export interface BlockCost {
  /** One micro-batch, with the tensor-parallel collectives inside it. */
  readonly forwardS: number;
  readonly backwardS: number;
  /** Of these, waiting for tensor-parallel neighbours. */
  readonly forwardTpS: number;
  readonly backwardTpS: number;
  /** The whole parameters, as they are gathered. */
  readonly gatheredBytes: number;
  /** The whole gradient, as it is reduced. */
  readonly gradientBytes: number;
  readonly updateS: number;
}

/** What the ranks of one stage pay for; block 0 is the root, whose computation is that of the head. */
export interface StageCosts {
  readonly blocks: readonly BlockCost[];
  /** Bytes of a micro-batch's activations from one stage to the next. */
  readonly boundaryBytes: number;
}

/** FLOPs of a layer for one token, forward: two a weight, and attention over half the context, since it is causal. */
function layerFlops(facts: ModelFacts, numWeights: number, sequenceLength: number, tp: number): number {
  return 2 * numWeights + (2 * sequenceLength * facts.shape.width) / tp;
}

/** FLOPs of a whole model for one token, forward and backward, without recomputation: what utilisation counts. */
export function modelFlopsPerToken(facts: ModelFacts, sequenceLength: number): number {
  const { width, vocabulary } = facts.shape;
  const layers = facts.blocks.map(({ parameters }) =>
    layerFlops(facts, weightsOf(parameters), sequenceLength, 1),
  );
  return 3 * (sum(layers) + 2 * width * vocabulary);
}

/** Prices what the ranks of a stage do. */
export function stageCosts(
  facts: ModelFacts,
  layout: Layout,
  share: StageShare,
  cluster: Cluster,
  scheme: ByteScheme,
  activation: ActivationOptions,
  sequenceLength: number,
): StageCosts {
  const { tp } = layout;
  const { numTokens, elementBytes, sequenceParallel, recompute } = activation;
  const tpLink = linkOf(
    cluster,
    Array.from({ length: tp }, (_, rank) => rank),
  );
  const streamBytes = numTokens * facts.shape.width * elementBytes;
  // One all-reduce after attention and one after the feed-forward layer; sequence parallelism halves each in two.
  const layerTpS = tp === 1 ? 0 : 2 * allReduceSeconds(tpLink, tp, streamBytes);
  const movedS = (2 * layerActivationBytes(facts.shape, activation)) / cluster.memoryBytesPerSecond;
  const blocks = share.layouts.map((flat, index): BlockCost => {
    const flops =
      index === 0
        ? headFlops(facts, share, tp)
        : layerFlops(facts, weightsOf(flat.parameters), sequenceLength, tp);
    const forwardS = (numTokens * flops) / cluster.flopsPerSecond + (index === 0 ? 0 : movedS);
    const tpS = index === 0 ? 0 : layerTpS;
    const again = recompute && index > 0 ? 1 : 0;
    const owned = flat.zero === 0 ? flat.numel : flat.sliceNumel;
    return {
      forwardS: forwardS + tpS,
      backwardS: (2 + again) * forwardS + (1 + again) * tpS,
      forwardTpS: tpS,
      backwardTpS: (1 + again) * tpS,
      gatheredBytes: flat.numel * scheme.compute,
      gradientBytes: flat.numel * scheme.gradient,
      updateS: (owned * updateBytes(scheme)) / cluster.memoryBytesPerSecond,
    };
  });
  const isKeptShort = sequenceParallel && tp > 1;
  return {
    blocks,
    boundaryBytes: isKeptShort ? streamBytes / tp : streamBytes,
  };
}

/** An update reads and writes masters and state, reads the gradient and writes what is computed with. */
function updateBytes(scheme: ByteScheme): number {
  const master = scheme.master || scheme.compute;
  return 2 * (master + scheme.optimizer) + scheme.reducedGradient + (scheme.master > 0 ? scheme.compute : 0);
}

function headFlops(facts: ModelFacts, share: StageShare, tp: number): number {
  const { width, vocabulary } = facts.shape;
  return share.ends.includes("last") ? (2 * width * vocabulary) / tp : 0;
}

/** Elements of matrices; what is a vector multiplies nothing. */
function weightsOf(parameters: readonly { readonly shape: readonly number[] }[]): number {
  const matrices = parameters.filter(({ shape }) => shape.length > 1);
  return sum(matrices.map(({ shape }) => numelOf(shape)));
}
