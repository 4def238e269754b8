import { TroupeError } from "../errors.ts";
import { clipFactor } from "../optim/index.ts";
import { type FlatBlock, firstNotFinite, type ShardStore, sumOfSquares } from "../parallel/index.ts";
import { hold, ops, type Tensor, tensor } from "../tensor/index.ts";
import type { LocalGroups } from "./local-groups.ts";
import type { ShardPlan } from "./shard-plan.ts";

/** What clipping multiplies the gradient by: all of it, or what an optimizer clips by itself. */
export interface ClipFactors {
  readonly all: number;
  readonly own?: readonly (number | undefined)[];
}

/** From 2³² down to 1 a scale halves 32 times; what still overflows after three times as many steps will go on to. */
const MAX_SKIPPED_IN_A_ROW = 100;

/** What all ranks know of a step's gradient. */
export interface AgreedGradient {
  /** L2 norm of the averaged gradient before clipping. */
  readonly norm: number;
  /** Whether it is not finite, and the step is to be skipped. */
  readonly skipped: boolean;
  readonly factors: ClipFactors;
}

/**
 * What the ranks must agree on before they update: the gradient's norm, and with it whether it is finite. All see the same
 * numbers, so all clip alike, and all skip or none.
 */
export class GradientAgreement {
  readonly #plan: ShardPlan;
  readonly #store: ShardStore;
  readonly #groups: LocalGroups;
  /** The flat blocks whose squares count here. */
  readonly #counted: readonly FlatBlock[];
  /** The names of each optimizer's parameters, of those that clip by themselves. */
  readonly #clippedAlone: readonly ReadonlySet<string>[];
  #skippedInARow = 0;

  constructor(plan: ShardPlan, store: ShardStore, groups: LocalGroups) {
    this.#plan = plan;
    this.#store = store;
    this.#groups = groups;
    this.#counted = plan.layouts.filter(({ trainable, counted }) => trainable && counted);
    this.#clippedAlone = plan.optimizers.flatMap(({ clipNorm, groups: named }) =>
      clipNorm === undefined ? [] : new Set(named.flatMap(({ names }) => names)),
    );
  }

  /** Whether an update waits for it: where nothing is clipped by a norm or skipped, blocks are updated one by one. */
  get isAwaited(): boolean {
    const { clip, lossScale } = this.#plan;
    const byNorm = clip !== undefined && clip.by !== "value";
    return lossScale !== undefined || this.#clippedAlone.length > 0 || byNorm;
  }

  /** A reduced block's sums of squares, for {@link agree}, which disposes them; none where the block does not count. */
  squareSums({ index, counted }: FlatBlock): Tensor | undefined {
    if (!counted) return undefined;
    return hold(() => this.#store.squareSums(index, this.#clippedAlone));
  }

  /**
   * Meets all ranks.
   * @param sums - {@link squareSums} of every block, by block
   * @param divisor - of the gradients' sum
   * @throws {TroupeError} `GRADIENT_NOT_FINITE` where no loss scale says what to do then, or it has said so too often
   */
  async agree(step: number, sums: ReadonlyMap<number, Tensor>, divisor: number): Promise<AgreedGradient> {
    const { clip, lossScale, optimizers } = this.#plan;
    const { squares, largest, where } = await this.#measure(step, sums);
    const [norm = 0, ...ofOptimizers] = squares.map((square) => Math.sqrt(square) / divisor);
    const skipped = !Number.isFinite(norm);
    this.#skippedInARow = skipped ? this.#skippedInARow + 1 : 0;
    if (skipped && (lossScale === undefined || this.#skippedInARow > MAX_SKIPPED_IN_A_ROW))
      throw notFinite(step, norm, where, this.#skippedInARow);
    const own = optimizers.map(({ clipNorm }) =>
      clipNorm === undefined ? undefined : clipFactor(ofOptimizers.shift() ?? 0, clipNorm),
    );
    if (clip === undefined || clip.by === "value") return { norm, skipped, factors: { all: 1, own } };
    const all = clipFactor(clip.by === "inf" ? largest / divisor : norm, clip.max);
    return { norm, skipped, factors: { all, own } };
  }

  /**
   * The summed gradient's squares, of all of it and of what each optimizer clips by itself, and its largest magnitude:
   * over the replicas' slices, then over the parts of the model.
   */
  async #measure(
    step: number,
    sums: ReadonlyMap<number, Tensor>,
  ): Promise<{ readonly squares: number[]; readonly largest: number; readonly where: string | undefined }> {
    const { clip, replicas, modelParallel } = this.#plan;
    const squareSums = this.#counted.map(({ index }) => sums.get(index) as Tensor);
    const shares = hold(() => {
      const magnitudes =
        clip?.by === "inf" ? this.#counted.map(({ index }) => this.#store.largestGradient(index)) : [];
      return ops.cat([...squareSums, tensor([Math.max(0, ...magnitudes)], { dtype: "float64" })]);
    });
    for (const each of squareSums) each.dispose();
    const bySlice = await this.#gathered(replicas, `norm/${step}`, shares);
    const numKinds = 1 + this.#clippedAlone.length;
    const squares = Array.from({ length: numKinds }, (_, kind) =>
      sumOfSquares(this.#counted, bySlice, kind, numKinds),
    );
    const largest = Math.max(...bySlice.map((share) => share.at(-1) ?? 0));
    const part = hold(() => tensor([...squares, largest], { dtype: "float64" }));
    const byPart = await this.#gathered(modelParallel, `norm of parts/${step}`, part);
    return {
      squares: squares.map((_, kind) => byPart.reduce((sum, each) => sum + (each[kind] ?? 0), 0)),
      largest: Math.max(...byPart.map((each) => each[numKinds] ?? 0)),
      where: firstNotFinite(this.#counted, bySlice, numKinds),
    };
  }

  /** The float64 values of all ranks of a group, in order; takes `value`. */
  async #gathered(group: readonly number[], key: string, value: Tensor): Promise<Float64Array[]> {
    const all = (await this.#groups.of(group).all(key, value)) as Tensor[];
    const values = all.map((each) => each.toTypedArray() as Float64Array);
    for (const each of all) each.dispose();
    return values;
  }
}

function notFinite(step: number, norm: number, where: string | undefined, inARow: number): TroupeError {
  const first = where === undefined ? "" : `, first in block ${where}`;
  const skipped = inARow > 1 ? ` ${inARow} steps in a row` : "";
  return new TroupeError(
    "GRADIENT_NOT_FINITE",
    `[step ${step}] expected a finite gradient norm: got ${norm}${skipped}${first} (lower the learning rate, or look at the batch)`,
    { fields: { step, norm: String(norm), block: where } },
  );
}
