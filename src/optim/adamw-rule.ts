import { ops, scope } from "../tensor/index.ts";
import type { AdamWSpec } from "./adamw.ts";
import { elementwise, segmentsOf, type UpdateRule } from "./update-rule.ts";

/** AdamW in one pass of the fused kernel. */
export function adamwRule(spec: AdamWSpec): UpdateRule {
  const { groups, betas, eps } = spec;
  return {
    groups,
    stateOf: (stretch) => elementwise(["exp_avg", "exp_avg_sq"], stretch),
    *update(stretches, step) {
      for (const stretch of stretches) {
        const { master, gradient, lowPrecision, state } = stretch;
        const { ends, learningRates, weightDecays } = segmentsOf(stretch, groups, step);
        const { exp_avg, exp_avg_sq } = state;
        if (exp_avg === undefined || exp_avg_sq === undefined) throw new Error("[adamw] state is missing");
        scope(() => {
          ops.troupe.adamw_(
            master,
            exp_avg,
            exp_avg_sq,
            gradient,
            lowPrecision,
            ends,
            learningRates,
            weightDecays,
            betas[0],
            betas[1],
            eps,
            step.updateIndex,
            step.gradientScale,
          );
        });
      }
    },
  };
}
