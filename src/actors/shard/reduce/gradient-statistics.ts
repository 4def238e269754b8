import { clipFactor, type DeviceScales } from "../../../compute/optim/index.ts";
import type { FlatBlock, ShardStore } from "../../../compute/parallel/index.ts";
import { hold, onHost, ops, Tensor, tensor } from "../../../compute/tensor/index.ts";
import { type StepFinding, StepJudge } from "../../../job/anomalies/index.ts";
import type { ShardPlan } from "../../protocols/index.ts";
import { gatherByRows } from "../group/gather-by-rows.ts";
import type { ShardGroups } from "../group/shard-groups.ts";
import { maySkipUpdates } from "../update/optimizer-clock.ts";
import { decidesOnDevice, scalesOnDevice } from "./device-scales.ts";
import { firstNotFinite, sumsOfSquares } from "./gradient-norm.ts";

/** Factors that clipping multiplies the gradient by: for all optimizers, and for those that clip by themselves. */
export interface ClipFactors {
  readonly all: number;
  readonly own?: readonly (number | undefined)[];
}

/** A step's gradient over all ranks, and the decision about it. */
export interface JudgedGradient {
  /** L2 norm of the averaged gradient before clipping. */
  readonly norm: number;
  readonly skipped: boolean;
  /** Whether its update must not be made: the step is skipped, or the run ends with it. */
  readonly updateSkipped: boolean;
  readonly finding: StepFinding | undefined;
  readonly factors: ClipFactors;
}

/** A step's statistics, exchanged. */
export interface StepStatistics {
  /** Scales of the updates, if they wait for the norm and a device computes them; the caller's. */
  readonly scales: DeviceScales | undefined;
  /** Judges the step, once, when its figures are on the host: late ones come behind all that the device was given before. */
  readonly judge: () => Promise<JudgedGradient>;
}

/** The ranks' figures of a step, summed or compared. */
interface Measured {
  /** Squares of the summed gradient: of all of it, then of each optimizer that clips by itself. */
  readonly squares: readonly number[];
  readonly largest: number;
  readonly lossNats: number;
  /** The first rank with a loss that is not finite. */
  readonly rank: number | undefined;
  /** The first block here with a gradient that is not finite. */
  readonly block: string | undefined;
}

/**
 * The gradient norm and the loss over all ranks, exchanged before the update, and the decision that follows. All ranks see the
 * same numbers, so all clip alike, and all skip or none.
 */
export class GlobalGradientStatistics {
  readonly #plan: ShardPlan;
  readonly #rank: number;
  readonly #store: ShardStore;
  readonly #groups: ShardGroups;
  /** The names of the parameters of each optimizer that clips by itself. */
  readonly #clippedAlone: readonly ReadonlySet<string>[];
  readonly #judge: StepJudge;
  /** Whether a device's values may come late: no update of the step waits for them on the host. */
  readonly isLate: boolean;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param rank - of the world */
  constructor(plan: ShardPlan, rank: number, store: ShardStore, groups: ShardGroups) {
    this.#plan = plan;
    this.#rank = rank;
    this.#store = store;
    this.#groups = groups;
    this.#judge = new StepJudge(
      plan.anomalies,
      plan.precision.lossScale !== undefined,
      plan.training.recentLosses,
    );
    this.#clippedAlone = plan.optimizers.flatMap(({ clipNorm, groups: named }) =>
      clipNorm === undefined ? [] : new Set(named.flatMap(({ names }) => names)),
    );
    const isOnDevice = plan.execution.devices[rank] !== "cpu";
    this.isLate = isOnDevice && (!this.isAwaited || decidesOnDevice(plan));
  }

  /** Whether updates wait for the statistics: if nothing is clipped by a norm or skipped, blocks are updated one by one. */
  get isAwaited(): boolean {
    const { clip } = this.#plan.training;
    const byNorm = clip !== undefined && clip.by !== "value";
    return maySkipUpdates(this.#plan) || this.#clippedAlone.length > 0 || byNorm;
  }

  /** A reduced block's sums of squares, for {@link exchange}, which disposes them; undefined if the block does not count. */
  squareSums({ index, counted }: FlatBlock): Tensor | undefined {
    if (!counted) return undefined;
    return hold(() => this.#store.squareSums(index, this.#clippedAlone));
  }

  /**
   * Exchanges every rank's figures. A device's values are not waited for: updates go by {@link StepStatistics.scales}, and the
   * judgement follows when they arrive.
   * @param sums - {@link squareSums} by block, of every block that the step trains and that counts
   * @param divisor - of the gradients' sum
   * @param losses - of the step's micro-batches on this rank, if it sends them; still the caller's
   */
  async exchange(
    step: number,
    sums: ReadonlyMap<number, Tensor>,
    divisor: number,
    losses: readonly number[] | Tensor,
  ): Promise<StepStatistics> {
    const { replicas } = this.#plan.peers;
    const counted = this.#plan.layouts.filter(({ index }) => sums.has(index));
    const shares = this.#sharesOf(counted, sums, losses);
    const all = await gatherByRows(this.#groups, replicas, this.#rank, `norm/${step}`, shares);
    const scales =
      this.isLate && this.isAwaited
        ? await scalesOnDevice(this.#plan, this.#groups, this.#rank, { step, counted, shares: all, divisor })
        : undefined;
    const judge = async () => this.#judged(await this.#measure(step, counted, await onHost(all)), divisor);
    return { scales, judge: () => this.#inTurn(judge) };
  }

  /** Judges after all earlier steps, whose losses the policy looks back on. */
  #inTurn(judge: () => Promise<JudgedGradient>): Promise<JudgedGradient> {
    const judged = this.#turn.then(judge);
    this.#turn = judged;
    return judged;
  }

  #judged({ squares, largest, ...figures }: Measured, divisor: number): JudgedGradient {
    const { optimizers, training } = this.#plan;
    const { clip } = training;
    const [norm = 0, ...ofOptimizers] = squares.map((square) => Math.sqrt(square) / divisor);
    const judgement = this.#judge.judge({ ...figures, gradientNorm: norm });
    const { policy = "tell" } = judgement.finding ?? {};
    // If the judgement is late, the device has made the update or left it out: then nothing is left to skip.
    const updateSkipped = judgement.skipped || (this.isAwaited && !this.isLate && policy !== "tell");
    const judged = { ...judgement, norm, updateSkipped };
    const own = optimizers.map(({ clipNorm }) =>
      clipNorm === undefined ? undefined : clipFactor(ofOptimizers.shift() ?? 0, clipNorm),
    );
    if (clip === undefined || clip.by === "value") return { ...judged, factors: { all: 1, own } };
    const all = clipFactor(clip.by === "inf" ? largest / divisor : norm, clip.max);
    return { ...judged, factors: { all, own } };
  }

  /** This rank's figures for its replicas: the sums of squares, the largest magnitude, and the sum and number of its losses. */
  #sharesOf(
    counted: readonly FlatBlock[],
    sums: ReadonlyMap<number, Tensor>,
    losses: readonly number[] | Tensor,
  ): Tensor {
    const { clip } = this.#plan.training;
    const squareSums = counted.map(({ index }) => sums.get(index) as Tensor);
    const shares = hold(() => {
      const magnitudes =
        clip?.by === "inf" ? counted.map(({ index }) => this.#store.largestGradient(index)) : [];
      const largest = Math.max(0, ...magnitudes);
      if (!(losses instanceof Tensor))
        return ops.cat([...squareSums, numbers([largest, sum(losses), losses.length])]);
      return ops.cat([...squareSums, numbers([largest]), sumInOrder(losses), numbers([losses.numel])]);
    });
    for (const each of squareSums) each.dispose();
    return shares;
  }

  /**
   * The summed gradient's squares and largest magnitude, and the losses, over the replicas' slices and the parts of the model.
   * @param shares - the replicas' figures, a row each, on the host; ownership passes
   */
  async #measure(step: number, counted: readonly FlatBlock[], shares: Tensor): Promise<Measured> {
    const { replicas, modelParallel } = this.#plan.peers;
    const numKinds = 1 + this.#clippedAlone.length;
    const [squares = []] = rowsOf(sumsOfSquares(counted, shares, replicas.length, numKinds), 1);
    const bySlice = rowsOf(shares, replicas.length);
    const ofReplicas = bySlice.map((share) => tailOf(share, 3));
    const largest = Math.max(...ofReplicas.map(([magnitude]) => magnitude as number));
    const numLosses = sum(ofReplicas.map(([, , count]) => count as number));
    const lossSums = ofReplicas.map(([, total]) => total as number);
    const firstBad = replicas[lossSums.findIndex((total) => !Number.isFinite(total))];
    const part = [...squares, sum(lossSums), numLosses, largest, firstBad ?? Number.POSITIVE_INFINITY];
    // Read from a device already: it goes from host to host.
    const own = hold(() => tensor(part, { dtype: "float64", device: "cpu" }));
    const parts = await gatherByRows(this.#groups, modelParallel, this.#rank, `norm of parts/${step}`, own);
    const byPart = rowsOf(parts, modelParallel.length);
    const total = part.map((_, index) => sum(byPart.map((each) => each[index] as number)));
    const ofParts = byPart.map((each) => tailOf(each, 2));
    const [lossSum = 0, count = 1] = total.slice(numKinds);
    const bad = Math.min(...ofParts.map(([, rank]) => rank as number));
    return {
      squares: total.slice(0, numKinds),
      largest: Math.max(...ofParts.map(([magnitude]) => magnitude as number)),
      lossNats: lossSum / count,
      rank: Number.isFinite(bad) ? bad : undefined,
      // A sum of squares is finite only if all its parts are: the millions of parts need no second look.
      block: squares.every(Number.isFinite) ? undefined : firstNotFinite(counted, bySlice, numKinds),
    };
  }
}

/** A vector's float64 values, cut into `numRows` rows; ownership passes. */
function rowsOf(all: Tensor, numRows: number): Float64Array[] {
  const values = all.toTypedArray() as Float64Array;
  all.dispose();
  const length = values.length / numRows;
  return Array.from({ length: numRows }, (_, row) => values.subarray(row * length, (row + 1) * length));
}

const numbers = (values: readonly number[]) => tensor(values, { dtype: "float64" });

/** The sum of a vector's elements in the order of a loop, so that its bits equal {@link sum}'s: a vector of one. */
function sumInOrder(values: Tensor): Tensor {
  const elements = Array.from({ length: values.numel }, (_, index) => values.narrow(0, index, 1));
  return elements.reduce((total, element) => total.add(element));
}

/** The last `count` values of a rank's figures. */
const tailOf = (values: Float64Array, count: number) => [...values.subarray(-count)];

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
