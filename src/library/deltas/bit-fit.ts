import type { CommonDeltaOptions, Delta } from "./delta.ts";
import { headsOf, peftTask } from "./family.ts";
import { liesIn } from "./target.ts";

/** Options of {@link bitFit}. */
export type BitFitOptions = CommonDeltaOptions;

/**
 * Trains only the biases; adds no parameters. peft has no such kind; they are saved by its naming rules.
 * @see Ben Zaken et al. 2021, https://arxiv.org/abs/2106.10199
 */
export function bitFit({ modulesToSave, folder }: BitFitOptions = {}): Delta {
  return {
    peftType: "BITFIT",
    folder,
    attach: () => {},
    trains: (name, model) =>
      name === "bias" || name.endsWith(".bias") || liesIn(name, modulesToSave ?? headsOf(model)),
    configJson: (model) => ({
      peft_type: "BITFIT",
      task_type: peftTask(model),
      modules_to_save: modulesToSave ?? headsOf(model),
    }),
  };
}
