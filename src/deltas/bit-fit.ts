import type { Delta } from "./delta.ts";
import { headsOf, peftTask } from "./family.ts";
import { liesIn } from "./target.ts";

/** What BitFit may be told. */
export interface BitFitOptions {
  /** Modules that are trained and saved whole; the new head of the model's task unless told otherwise. */
  readonly modulesToSave?: readonly string[] | undefined;
  /** A folder whose values it begins with. */
  readonly folder?: string | undefined;
}

/**
 * Only the biases are trained: nothing is added. peft has no such kind; it is saved by the same names.
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
