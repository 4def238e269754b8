import type { Module, TensorPlan } from "../../../compute/nn/index.ts";
import { full, type Tensor } from "../../../compute/tensor/index.ts";
import type { PlannedModel } from "./model-trace.ts";

/** A model that predicts the next token of a text. */
export interface TextModel extends Module {
  readonly tensorPlan?: TensorPlan;
  forward(batch: { readonly inputIds: Tensor; readonly labels: Tensor }): { readonly loss?: Tensor };
}

/**
 * Describes a language model to the planner, for texts of one length.
 * @param build - declares the model
 * @param length - positions of a sample
 */
export function languageModel(build: () => TextModel, length: number): PlannedModel {
  return {
    build,
    tensorPlan: build().tensorPlan,
    loss: (model, numSamples) => {
      const ids = full([numSamples, length], 0, { dtype: "int64" });
      return (model as TextModel).forward({ inputIds: ids, labels: ids }).loss as Tensor;
    },
    batchBytes: (numSamples) => 2 * numSamples * length * BigInt64Array.BYTES_PER_ELEMENT,
    someSamples: 1,
    tokensPerSample: length,
  };
}
