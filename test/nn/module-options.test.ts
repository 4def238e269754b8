import { expect, it } from "vitest";
import {
  BatchNorm1d,
  Conv1D,
  Conv1d,
  Conv2d,
  ExpertMLP,
  Linear,
  MixtureOfExperts,
  WeightNormConv1d,
} from "../../src/compute/nn/index.ts";

it.each([
  ["Linear", () => new Linear(2, 2, { bais: false } as object), "bais (did you mean bias?)"],
  ["Conv1D", () => new Conv1D(2, 2, { actvation: "relu" } as object), "actvation (did you mean activation?)"],
  ["Conv1d", () => new Conv1d(2, 2, 3, { pading: 1 } as object), "pading (did you mean padding?)"],
  ["Conv2d", () => new Conv2d(2, 2, 3, { strides: 1 } as object), "strides (did you mean stride?)"],
  [
    "WeightNormConv1d",
    () => new WeightNormConv1d(2, 2, 3, 2, { bias: false } as object),
    "bias (there are stride, padding, dilation, groups, init)",
  ],
  ["BatchNorm1d", () => new BatchNorm1d(2, { epsilon: 1 } as object), "epsilon (there are eps, momentum)"],
  [
    "ExpertMLP",
    () => new ExpertMLP(2, 2, 2, { activaton: "relu" } as object),
    "activaton (did you mean activation?)",
  ],
  [
    "MixtureOfExperts",
    () => new MixtureOfExperts(2, new ExpertMLP(2, 2, 2), { capacity_factor: 2 } as object),
    "capacity_factor (did you mean capacityFactor?)",
  ],
])("%s refuses an option that it does not have, with the one that was meant", (name, make, got) => {
  expect(make).toThrow(`[${name}] expected an option, got ${got}`);
});
