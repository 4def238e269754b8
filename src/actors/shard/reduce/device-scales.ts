import { type DeviceScales, updateRuleOf } from "../../../compute/optim/index.ts";
import { type FlatBlock, SLICE_ALIGNMENT } from "../../../compute/parallel/index.ts";
import { hold, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { maySkip, type StepAnomaly } from "../../../job/anomalies/index.ts";
import type { ShardPlan } from "../../protocols/index.ts";
import { gatherByRows } from "../group/gather-by-rows.ts";
import type { ShardGroups } from "../group/shard-groups.ts";

/**
 * Whether a device can decide on updates that wait for the gradient's norm: what is clipped, and that a gradient which is not
 * finite changes nothing. It cannot where a step may be left out, since that changes what the host begins the next one with; by
 * the largest magnitude or by losses; or for an optimizer on the host, or one whose rule reads the gradient's scale there.
 */
export function decidesOnDevice(plan: ShardPlan): boolean {
  const { training, optimizers, offload, precision, anomalies } = plan;
  const isTold = (anomaly: StepAnomaly) => anomalies.policies[anomaly] === "tell";
  return (
    precision.lossScale === undefined &&
    !maySkip(anomalies) &&
    training.clip?.by !== "inf" &&
    offload.optimizer === undefined &&
    isTold("loss-spike") &&
    isTold("loss-not-finite") === isTold("gradient-not-finite") &&
    optimizers.every((spec) => updateRuleOf(spec).takesScale === true)
  );
}

/** What the replicas have told each other of a step, on the device. */
export interface GatheredSquares {
  readonly step: number;
  /** The flat blocks whose squares count, in order. */
  readonly counted: readonly FlatBlock[];
  /** A row a replica: of each of these blocks the sums of squares of its chunks, by kind, and more behind them. */
  readonly shares: Tensor;
  /** Of the gradients' sum. */
  readonly divisor: number;
}

/**
 * What a device makes of the norm, of the parts of the model together: with the bits of `sumOfSquares` and `clipFactor`, and
 * nobody waits for it. All ranks of a part have the same.
 * @returns the caller's
 * @throws {TroupeError} `COLLECTIVE_ABORTED`
 */
export async function scalesOnDevice(
  { optimizers, training, peers, anomalies }: ShardPlan,
  groups: ShardGroups,
  rank: number,
  { step, counted, shares, divisor }: GatheredSquares,
): Promise<DeviceScales> {
  const { replicas, modelParallel } = peers;
  const { clip } = training;
  const limits = [
    clip?.by === "l2" ? clip.max : Number.POSITIVE_INFINITY,
    ...optimizers.flatMap(({ clipNorm }) => clipNorm ?? []),
  ];
  const numKinds = limits.length;
  const numChunks = counted.map(({ sliceNumel }) => sliceNumel / SLICE_ALIGNMENT);
  const squares = hold(() => ops.troupe.sumSquareSums(shares, replicas.length, numChunks, numKinds));
  const byPart = await gatherByRows(groups, modelParallel, rank, `squares of parts/${step}`, squares);
  const leavesOut = anomalies.policies["gradient-not-finite"] !== "tell";
  const scales = hold(() => {
    const ofParts = byPart.reshape([modelParallel.length, numKinds]);
    return ops.troupe.gradientScales(ofParts, divisor, limits, leavesOut);
  });
  byPart.dispose();
  const [all, ...alone] = limits.map((_, kind) => hold(() => scales.narrow(0, kind, 1)));
  scales.dispose();
  const own = optimizers.map(({ clipNorm }) => (clipNorm === undefined ? undefined : alone.shift()));
  return { all: all as Tensor, own };
}
