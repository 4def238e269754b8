// BMTrain's tests of inputs and outputs of blocks, and the defects of its blocks, under every way to run them.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { batchSize } from "../../fixtures/acceptance/exhibition.ts";
import { features } from "../../fixtures/acceptance/exhibits/layer.ts";
import { Exhibition } from "../../fixtures/acceptance/exhibits.ts";
import {
  type ByName,
  gradientsOf,
  parametersOf,
  plainly,
  type Trained,
  train,
} from "../../fixtures/acceptance/train.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/acceptance/exhibition.ts", import.meta.url);
const seed = 1337;
const steps = 2;
const numMicroBatches = 2;

const levels = [0, 1, 2, 3].flatMap((zero) => [
  { ranks: 2, zero },
  { ranks: 2, zero, recompute: true },
]);
const others = [{ ranks: 2, zero: 3, tp: 2, accumulation: 2, recompute: true }];

const expected = plainly(
  new Exhibition(),
  seed,
  Array.from({ length: numMicroBatches }, (_, index) => {
    const size = batchSize / numMicroBatches;
    return features(index * size, size);
  }),
  (model, x) => model.forward(x),
);

/** The first layout's run: all others equal it to the bit. */
let first: { readonly losses: Trained["losses"]; readonly gradients: ByName } | undefined;
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

describe.each([...levels, ...others])("blocks trained with %o", (options) => {
  let run: Trained;
  let gradients: ByName;
  let parameters: ByName;

  beforeAll(async () => {
    run = await train(job, workspace.path(JSON.stringify(options)), { steps, seed, ...options });
    gradients = await gradientsOf(run, 1);
    first ??= { losses: run.losses, gradients };
    parameters = await parametersOf(run, steps);
  });

  /** @param exhibit - whose gradients must be plain autograd's */
  function expectGradients(exhibit: keyof Exhibition): void {
    const names = [...expected.gradients.keys()].filter((name) => name.startsWith(`${exhibit}.`));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const values = expected.gradients.get(name) as Float32Array;
      // float32 sums of some tens of terms, added in another order.
      const tolerance = 1e-7 + 1e-5 * Math.max(...values.map(Math.abs));
      const got = gradients.get(name);
      expect(got?.length, name).toBe(values.length);
      const difference = Math.max(
        ...values.map((value, index) => Math.abs(value - (got?.[index] ?? Number.NaN))),
      );
      expect(difference, name).toBeLessThan(tolerance);
    }
  }

  const isZero = (name: string) => gradients.get(name)?.every((value) => value === 0);

  it("come to the loss of plain autograd, and to the same losses and gradients to the bit on every layout", () => {
    expect(run.losses).toHaveLength(steps);
    expect(run.losses[0]).toBeCloseTo(expected.lossNats, 4);
    expect(run.losses).toEqual(first?.losses);
    expect(gradients).toEqual(first?.gradients);
  });

  // BMTrain test different_output_shape; Appendix A 11.
  it("return a tensor, lists of one, two and ten, and nested objects as their modules made them", () => {
    expectGradients("forms");
  });

  // BMTrain test multi_return.
  it("take five tensors and return three, all with gradients", () => {
    expectGradients("manyReturns");
  });

  // BMTrain test middle_hidden.
  it("give the gradients of a loss on the last hidden state, on those in the middle, and on all", () => {
    for (const exhibit of ["lastHidden", "middleHidden", "allHiddens"] as const) expectGradients(exhibit);
    expect(isZero("middleHidden.layers.1.weight")).toBe(false);
    expect(isZero("middleHidden.layers.2.weight")).toBe(true);
  });

  // BMTrain test other_hidden.
  it("give zeros where the loss is of weights around them alone, whether they are run or not", () => {
    for (const exhibit of ["otherHiddens", "noHiddens"] as const) {
      expectGradients(exhibit);
      expect(isZero(`${exhibit}.before.weight`)).toBe(false);
      expect(isZero(`${exhibit}.layers.0.weight`)).toBe(true);
    }
  });

  // Appendix A 2.
  it("sum the gradients of all uses of a layer that stands in the list three times", () => {
    expectGradients("sharedLayer");
    expect([...gradients.keys()].filter((name) => name.startsWith("sharedLayer."))).toHaveLength(3);
  });

  // Appendix A 2.
  it("sum the gradients of all uses of a weight that blocks share with each other and with the root", () => {
    expectGradients("tiedWeights");
  });

  // Appendix A 3.
  it("receive complete option objects, with tensors in them and after omitted arguments", () => {
    expectGradients("optionObjects");
  });

  // Appendix A 11; BMTrain test no_grad: a trainable block behind an input without gradient.
  it("return several tensors from an input that asks for no gradient", () => {
    expectGradients("splitBatch");
  });

  // BMTrain test no_grad: gradients of a trainable block behind a frozen one.
  it("have gradients behind frozen blocks, and hand them on through frozen ones", () => {
    for (const exhibit of ["frozenBefore", "frozenBetween"] as const) expectGradients(exhibit);
  });

  // BMTrain test requires_grad.
  it("that are frozen never change and keep no state, but are saved", () => {
    const frozen = [...expected.parameters.keys()].filter((name) => !expected.gradients.has(name));
    expect(frozen).toContain("frozenBetween.layers.2.bias");
    expect(frozen).toContain("frozenBefore.layers.4.weight");
    for (const name of frozen) {
      expect(parameters.get(name), name).toEqual(expected.parameters.get(name));
      expect(gradients.has(name), name).toBe(false);
    }
    const changed = [...gradients.keys()].filter((name) => !isZero(name));
    for (const name of changed) expect(parameters.get(name), name).not.toEqual(expected.parameters.get(name));
  });

  // BMTrain test no_grad: how often forward runs.
  it("are computed once a micro-batch, twice where recomputed and trained, never for nothing twice", () => {
    const { frozenBefore, wandering } = JSON.parse(run.sample ?? "{}") as Record<string, number[]>;
    const passes = steps * ("accumulation" in options ? numMicroBatches : 1);
    const again = "recompute" in options ? 2 : 1;
    const perPass = [1, 1, 1, 1, 1, again, again, again, again, again];
    expect(frozenBefore).toEqual(perPass.map((times) => times * passes));
    // The first is used twice, the third is computed for nothing, the fourth is never called.
    expect(wandering).toEqual([2 * again, again, 1, 0, again].map((times) => times * passes));
  });

  it("may run in any order, twice, for nothing, or never", () => {
    expectGradients("wandering");
    expect(isZero("wandering.layers.2.weight")).toBe(true);
    expect(isZero("wandering.layers.3.weight")).toBe(true);
  });

  it("may differ from replica to replica within a step", () => {
    expectGradients("routed");
  });

  // Appendix A 4.
  it("may hold constant tensors, and frozen parameters in place of persistent buffers", () => {
    expectGradients("holding");
    const buffer = Float32Array.from([0, 0.1, 0.2, 0.3, 0.4, 0.5]);
    expect(parameters.get("holding.blocks.1.buffer")).toEqual(buffer);
  });

  // BMTrain test model_wrapper; Appendix A 11: null children.
  it("are made of a user's own modules as they stand: lists in lists, null children, lone parameters", () => {
    expectGradients("userTree");
  });

  it("may pass on what they are given, under two names", () => {
    expectGradients("passingOn");
  });
});
