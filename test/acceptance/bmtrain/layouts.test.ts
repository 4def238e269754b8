// What BMTrain's layouts change and ours must not: initial values, names in a checkpoint, the magnitude of gradients.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gpt, tokens } from "../../fixtures/acceptance/gpt.ts";
import {
  type ByName,
  gradientsOf,
  parametersOf,
  plainly,
  type Trained,
  train,
} from "../../fixtures/acceptance/train.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/acceptance/gpt.ts", import.meta.url);
const seed = 33;
const batch = 8;

const numMicroBatches = 4;
const expected = plainly(
  gpt({ layers: 2, dropout: 0 }),
  seed,
  Array.from({ length: numMicroBatches }, (_, index) => tokens(2 * index, batch / numMicroBatches)),
  (model, { inputIds, targets }) => model.forward(inputIds, { targets }).loss,
);
const norm = Math.sqrt(
  [...expected.gradients.values()].flatMap((values) => [...values]).reduce((sum, v) => sum + v * v, 0),
);

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

describe.each([
  { ranks: 1, zero: 0, accumulation: 4 },
  { ranks: 4, zero: 3 },
  { ranks: 2, tp: 2, zero: 3, accumulation: 4 },
  { ranks: 2, pp: 2, zero: 2, accumulation: 4 },
  { ranks: 4, tp: 2, pp: 2, sequenceParallel: true, zero: 1, accumulation: 4, recompute: true },
  { ranks: 2, placement: "process", zero: 3, accumulation: 2 },
] as const)("one step with %o", (options) => {
  let run: Trained;
  let parameters: ByName;
  let gradients: ByName;

  beforeAll(async () => {
    run = await train(job, workspace.path(JSON.stringify(options)), { seed, ...options }, { batch });
    parameters = await parametersOf(run, 1);
    gradients = await gradientsOf(run, 1);
  });

  // BMTrain tests init_parameters and init_parameters_multi_gpu; Appendix A 19.
  it("begins with the initial values of one device, to the bit", () => {
    for (const [name, values] of expected.parameters) expect(parameters.get(name), name).toEqual(values);
  });

  // BMTrain test load_ckpt.
  it("saves every parameter once, completely, under the name it has in the model", () => {
    expect([...parameters.keys()].toSorted()).toEqual([...expected.parameters.keys()].toSorted());
  });

  // Appendix A 7.
  it("makes gradients of the magnitude of one device: no factor of stages, ranks or replicas", () => {
    // Sums over features and samples are added in another order: float32 rounding.
    expect(run.losses[0]).toBeCloseTo(expected.lossNats, 5);
    expect(run.gradientNorms[0]).toBeCloseTo(norm, 5);
    for (const [name, values] of expected.gradients) {
      const difference = Math.max(
        ...values.map((value, index) => Math.abs(value - (gradients.get(name)?.[index] ?? Number.NaN))),
      );
      expect(difference, name).toBeLessThan(1e-7 + 1e-5 * Math.max(...values.map(Math.abs)));
    }
  });
});
