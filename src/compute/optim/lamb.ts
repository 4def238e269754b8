import { ops, scope } from "../tensor/index.ts";
import { AdamLike, type AdamOptions, adamDirection } from "./adam.ts";
import { bothMaxima, joined, placesOf, squareSumsOf, summed } from "./complete-parameter.ts";
import { norm } from "./local-updates.ts";
import type { NamedShapes } from "./parameter-groups.ts";
import type { Defaults } from "./parameter-options.ts";
import {
  elementwise,
  type OptimizerKind,
  type OwnRule,
  type Segments,
  segmentsOf,
  stateTensor,
} from "./update-rule.ts";

/** Options of {@link LAMB}; defaults: lr 1e-3, weightDecay 0.01, eps 1e-6. */
export type LAMBOptions = AdamOptions;

const defaults = {
  lr: 1e-3,
  weightDecay: 0.01,
  betas: [0.9, 0.999],
  eps: 1e-6,
} as const satisfies Defaults<LAMBOptions>;

/**
 * LAMB: Adam's direction with decay, its length per parameter that of the parameter, for very large batches. A parameter
 * or a direction of norm zero moves as under Adam.
 * @see You et al. 2020, https://arxiv.org/abs/1904.00962
 */
export class LAMB extends AdamLike {
  readonly kind = "lamb";

  /**
   * @param parameters - names with shapes: `module.namedParameters()`
   * @throws `OPTIMIZER_OPTION` for an option out of range
   */
  constructor(parameters: NamedShapes, options: LAMBOptions = {}) {
    super(parameters, options, defaults);
  }
}

/** {@link LAMB} as plain data. */
export type LAMBSpec = LAMB;

/** LAMB: the direction in one pass, two exchanges for the norms of complete parameters, the step in another pass. */
function rule(spec: LAMBSpec): OwnRule {
  const { groups, betas, eps, maximize } = spec;
  return {
    exchanges: true,
    updatesPartOf: { layers: true, experts: false },
    stateOf: (stretch) => elementwise(["exp_avg", "exp_avg_sq"], stretch),
    *update(share, step) {
      if (share.parameters.length === 0) return;
      const scale = maximize ? -step.gradientScale : step.gradientScale;
      const segments: Segments[] = [];
      for (const stretch of share.stretches) {
        const ofStretch = segmentsOf(stretch, groups, step);
        segments.push(ofStretch);
        scope(() => {
          // biome-ignore format: the arguments of a kernel
          ops.troupe.lambDirection_(
            stretch.gradient, stretch.master, stateTensor(stretch, "exp_avg"),
            stateTensor(stretch, "exp_avg_sq"), ofStretch.ends, ofStretch.weightDecays, betas[0], betas[1],
            eps, step.updateIndex, scale,
          );
        });
      }
      const count = share.parameters.length;
      const maxima = yield* bothMaxima(share);
      const ofMasters = squareSumsOf(share, (stretch) => stretch.master, maxima.subarray(0, count));
      const ofGradients = squareSumsOf(share, (stretch) => stretch.gradient, maxima.subarray(count));
      const squares = joined(yield* summed(Float64Array.of(...ofMasters, ...ofGradients)));
      const places = placesOf(share);
      share.stretches.forEach(({ master, gradient, lowPrecision, pieces }, index) => {
        const { ends, learningRates } = segments[index] as Segments;
        const rates = pieces.map(({ parameter }, piece) => {
          const place = places.get(parameter.name) as number;
          const rate = learningRates[piece] as number;
          return rate * trustRatio(Math.sqrt(squares[place]!), Math.sqrt(squares[count + place]!));
        });
        const keeps = rates.map(() => 1);
        scope(() => ops.troupe.stepAlong_(master, gradient, lowPrecision, ends, rates, keeps));
      });
    },
  };
}

/** LAMB: the rule of a shard, and its formulas. */
export const lamb: OptimizerKind<LAMBSpec> = {
  rule,
  reference(spec, update) {
    const { value, gradient, lr, weightDecay } = update;
    const direction = adamDirection(update, gradient, spec).add(value, weightDecay);
    value.sub_(direction, lr * trustRatio(norm(value), norm(direction)));
  },
};

/** @returns the factor that makes the direction as long as the parameter */
function trustRatio(parameterNorm: number, directionNorm: number): number {
  return parameterNorm > 0 && directionNorm > 0 ? parameterNorm / directionNorm : 1;
}
