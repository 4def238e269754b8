import { type DeviceScales, updateRuleOf } from "../../../compute/optim/index.ts";
import type { FlatBlock } from "../../../compute/parallel/index.ts";
import { hold, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { maySkip, type StepAnomaly } from "../../../job/anomalies/index.ts";
import type { ShardPlan } from "../../protocols/index.ts";
import { gatherByRows } from "../group/gather-by-rows.ts";
import type { ShardGroups } from "../group/shard-groups.ts";
import { sumsOfSquares } from "./gradient-norm.ts";

/**
 * Whether a device can decide updates that wait for the gradient norm: clipping, and ignoring a gradient that is not finite. It
 * cannot if a step may be skipped, since the host then begins the next one differently; nor by the largest magnitude or by
 * losses; nor for an optimizer on the host, or one whose rule reads the gradient's scale there.
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

/** The replicas' exchanged sums of squares of a step, on the device. */
export interface GatheredSquares {
  readonly step: number;
  /** The flat blocks whose squares count, in order. */
  readonly counted: readonly FlatBlock[];
  /** A row a replica: the sums of squares of each counted block's chunks, by kind, and more behind them. */
  readonly shares: Tensor;
  /** Divides the gradients' sum. */
  readonly divisor: number;
}

/**
 * Computes the parts' scales from the norm on the device, without a wait and with the host's bits, alike on all ranks of a part.
 * @returns the caller's @throws {TroupeError} `COLLECTIVE_ABORTED`
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
  const squares = sumsOfSquares(counted, shares, replicas.length, numKinds);
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
