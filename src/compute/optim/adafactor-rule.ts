import { hold, ops, scope, type Tensor, tensor } from "../tensor/index.ts";
import { type AdafactorSpec, relativeStepOf } from "./adafactor.ts";
import { type Matrices, matricesOf, placesIn, stateOf } from "./adafactor-state.ts";
import {
  bothMaxima,
  type Exchange,
  joined,
  largestOf,
  maximaOf,
  placesOf,
  squareSumsOf,
  summed,
} from "./complete-parameter.ts";
import { kept, rootMeanSquare } from "./local-updates.ts";
import {
  type OptimizerKind,
  type OwnedStretch,
  type OwnRule,
  segmentsOf,
  stateTensor,
  type UpdateShare,
  type UpdateStep,
} from "./update-rule.ts";

/**
 * Adafactor over slices. The means over complete rows and columns come from sums that all ranks exchange, and every rank that
 * owns a part of a matrix keeps all of its row and column means, a few numbers beside the matrix. Four exchanges a block:
 * largest magnitudes, sums over rows and columns, and the same for the size of the update.
 */
function rule(spec: AdafactorSpec): OwnRule {
  return {
    exchanges: true,
    updatesPartOf: { layers: false, experts: false },
    stateOf: (stretch) => stateOf(spec, stretch),
    *update(share, step) {
      if (share.parameters.length === 0) return;
      const scale = spec.maximize ? -step.gradientScale : step.gradientScale;
      const squares = yield* directions(spec, share, step, scale);
      const { parameters } = share;
      const maxima = yield* largestOf(maximaOf(share, (stretch) => stretch.gradient));
      const updates = joined(yield* summed(squareSumsOf(share, (stretch) => stretch.gradient, maxima)));
      const rms = (sum: number, place: number) => Math.sqrt(sum / (parameters[place]?.numel ?? 1));
      const places = placesOf(share);
      for (const stretch of share.stretches) {
        const { ends, learningRates, weightDecays } = segmentsOf(stretch, spec.groups, step);
        const relative = relativeStepOf(spec, step.updateIndex);
        const lrs = stretch.pieces.map(({ parameter }, piece) => {
          const place = places.get(parameter.name) as number;
          const size = spec.scaleParameter ? Math.max(spec.eps[1], rms(squares[place]!, place)) : 1;
          return (learningRates[piece] as number) * relative * size;
        });
        const rates = stretch.pieces.map(({ parameter }, piece) => {
          const place = places.get(parameter.name) as number;
          return lrs[piece]! / Math.max(1, rms(updates[place]!, place) / spec.clipThreshold);
        });
        const keeps = lrs.map((lr, piece) => 1 - lr * (weightDecays[piece] as number));
        scope(() => take(spec, stretch, ends, rates, keeps));
      }
    },
  };
}

/** Adafactor: the rule of a shard, and its formulas. */
export const adafactor: OptimizerKind<AdafactorSpec> = {
  rule,
  reference(spec, update) {
    const { value, gradient, weightDecay, step } = update;
    const beta2 = 1 - step ** spec.decayRate;
    const squares = gradient.square().add(spec.eps[0]);
    const towards = (state: Tensor, mean: Tensor) => state.mul_(beta2).add_(mean, 1 - beta2);
    const { shape } = value;
    let direction: Tensor;
    if (shape.length < 2) {
      direction = gradient.div(towards(kept(update, "exp_avg_sq"), squares).sqrt());
    } else {
      const columnShape = [...shape.slice(0, -2), ...shape.slice(-1)];
      const rows = towards(kept(update, "exp_avg_sq_row", shape.slice(0, -1)), squares.mean([-1]));
      const columns = towards(kept(update, "exp_avg_sq_col", columnShape), squares.mean([-2]));
      const ofRows = rows
        .div(rows.mean([-1], true))
        .rsqrt()
        .unsqueeze(-1);
      direction = ofRows.mul(columns.unsqueeze(-2).rsqrt()).mul(gradient);
    }
    const size = spec.scaleParameter ? Math.max(spec.eps[1], rootMeanSquare(value)) : 1;
    const lr = update.lr * relativeStepOf(spec, step) * size;
    direction = direction.mul(lr / Math.max(1, rootMeanSquare(direction) / spec.clipThreshold));
    if (spec.beta1 !== undefined)
      direction = kept(update, "exp_avg")
        .mul_(spec.beta1)
        .add_(direction, 1 - spec.beta1);
    value.mul_(1 - lr * weightDecay).sub_(direction);
  },
};

/** Takes the step, through the first moment if one is kept. */
function take(
  spec: AdafactorSpec,
  stretch: OwnedStretch,
  ends: readonly number[],
  rates: readonly number[],
  keeps: readonly number[],
): void {
  const { master, gradient, lowPrecision } = stretch;
  if (spec.beta1 === undefined) {
    ops.troupe.stepAlong_(master, gradient, lowPrecision, ends, rates, keeps);
    return;
  }
  ops.troupe.blendDirection_(gradient, stateTensor(stretch, "exp_avg"), ends, rates, spec.beta1);
  const ones = rates.map(() => 1);
  ops.troupe.stepAlong_(master, gradient, lowPrecision, ends, ones, keeps);
}

/**
 * Updates the second moments and writes the directions over the gradient.
 * @returns the sum of squares of each parameter's values
 */
function* directions(
  spec: AdafactorSpec,
  share: UpdateShare,
  step: UpdateStep,
  scale: number,
): Exchange<number[]> {
  const { parameters, stretches } = share;
  const count = parameters.length;
  const maxima = yield* bothMaxima(share);
  const factored = new FactoredSums(share, maxima.subarray(count), scale);
  const ofValues = squareSumsOf(share, (stretch) => stretch.master, maxima.subarray(0, count));
  const [values, ...factors] = split(yield* summed(concat([ofValues, ...factored.parts])), [
    ofValues,
    ...factored.parts,
  ]);
  const beta2 = 1 - step.updateIndex ** spec.decayRate;
  for (const stretch of stretches) {
    for (const place of placesIn(stretch)) {
      const { piece } = place;
      const matrices = matricesOf(piece.parameter.shape);
      const gradient = hold(() => stretch.gradient.narrow(0, piece.rangeBegin, piece.numel));
      if (matrices === undefined) {
        scope(() => {
          const second = stateTensor(stretch, "exp_avg_sq").narrow(0, place.vectorBegin, piece.numel);
          ops.troupe.adafactorVector_(gradient, second, beta2, spec.eps[0], scale);
        });
      } else {
        const [rows, columns] = factored.of(piece.parameter.name, factors);
        const towards = (state: string, begin: number, sums: readonly number[], length: number) => {
          const means = sums.map((sum) => sum / length + spec.eps[0]);
          return scope(() =>
            averaged(stateTensor(stretch, state).narrow(0, begin, sums.length), means, beta2),
          );
        };
        const rowMeans = towards("exp_avg_sq_row", place.rowBegin, rows, matrices.columns);
        const columnMeans = towards("exp_avg_sq_col", place.columnBegin, columns, matrices.rows);
        scope(() => {
          const shape = [matrices.count, matrices.rows, matrices.columns];
          const ofRows = tensor(rowFactors(rowMeans, matrices));
          const ofColumns = tensor(columnMeans.map((mean) => 1 / Math.sqrt(mean)));
          ops.troupe.adafactorMatrix_(gradient, ofRows, ofColumns, shape, piece.parameterBegin, scale);
        });
      }
      gradient.dispose();
    }
  }
  return joined(values as Float64Array);
}

/** Moves a state of means towards those of this step. @returns the state, which float32 holds */
function averaged(state: Tensor, means: readonly number[], beta2: number): Float32Array {
  const before = state.toTypedArray() as Float32Array;
  const after = before.map((mean, index) => beta2 * mean + (1 - beta2) * means[index]!);
  state.copy_(tensor(after));
  return after;
}

/** 1 / √(row mean / mean of the row means), matrix by matrix. */
function rowFactors(means: Float32Array, { count, rows }: Matrices): Float32Array {
  const factors = new Float32Array(means.length);
  for (let matrix = 0; matrix < count; matrix++) {
    const ofMatrix = means.subarray(matrix * rows, (matrix + 1) * rows);
    const mean = ofMatrix.reduce((sum, value) => sum + value, 0) / rows;
    ofMatrix.forEach((value, row) => {
      factors[matrix * rows + row] = 1 / Math.sqrt(value / mean);
    });
  }
  return factors;
}

function concat(parts: readonly Float64Array[]): Float64Array {
  return Float64Array.from(parts.flatMap((part) => [...part]));
}

/** Cuts `all` into parts as long as those of `like`. */
function split(all: Float64Array, like: readonly Float64Array[]): Float64Array[] {
  let begin = 0;
  return like.map(({ length }) => {
    begin += length;
    return all.subarray(begin - length, begin);
  });
}

/** Sums of squared gradients over rows and columns of every matrix of a block, in exact parts. */
class FactoredSums {
  /** For each matrix parameter its rows, then its columns. */
  readonly parts: readonly Float64Array[];
  readonly #first = new Map<string, number>();

  /**
   * @param maxima - the largest magnitude of each complete parameter's gradient, before `scale`
   * @param scale - multiplies the gradient
   */
  constructor(share: UpdateShare, maxima: ArrayLike<number>, scale: number) {
    const parts: Float64Array[] = [];
    const places = placesOf(share);
    for (const { name, shape } of share.parameters) {
      const matrices = matricesOf(shape);
      if (matrices === undefined) continue;
      this.#first.set(name, parts.length);
      parts.push(new Float64Array(2 * matrices.count * matrices.rows));
      parts.push(new Float64Array(2 * matrices.count * matrices.columns));
    }
    for (const { gradient, pieces } of share.stretches) {
      for (const { parameter, parameterBegin, rangeBegin, numel } of pieces) {
        const first = this.#first.get(parameter.name);
        const matrices = matricesOf(parameter.shape);
        if (first === undefined || matrices === undefined) continue;
        // A little more than the product, which is rounded to float32.
        const largest = maxima[places.get(parameter.name) as number]! * Math.abs(scale) * 1.001;
        scope(() => {
          const [rows, columns] = ops.troupe.factoredSquareSums(
            gradient.narrow(0, rangeBegin, numel),
            [matrices.count, matrices.rows, matrices.columns],
            parameterBegin,
            scale,
            parameter.numel * largest ** 2,
          );
          parts[first] = rows.toTypedArray() as Float64Array;
          parts[first + 1] = columns.toTypedArray() as Float64Array;
        });
      }
    }
    this.parts = parts;
  }

  /** @returns the complete sums of one parameter's rows and columns, from the exchanged parts */
  of(name: string, exchanged: readonly Float64Array[]): readonly [rows: number[], columns: number[]] {
    const first = this.#first.get(name) as number;
    const columns = exchanged[first + 1] as Float64Array;
    const half = columns.length / 2;
    return [
      joined(exchanged[first] as Float64Array),
      Array.from({ length: half }, (_, index) => columns[index]! + columns[half + index]!),
    ];
  }
}
