import { describe, expect, it } from "vitest";
import {
  distillationLoss,
  dpoLoss,
  generalizedAdvantages,
  groupAdvantages,
  ipoLoss,
  klEstimate,
  ktoLoss,
  leaveOneOutAdvantages,
  orpoLoss,
  overlongPenalties,
  policyLoss,
  reinforcePlusPlusAdvantages,
  rewardModelLoss,
  textLogProbs,
  tokenLogProbs,
  tokenRewards,
  tokenWeights,
  valueLoss,
  weighedMean,
  whitened,
} from "../../src/entries/objectives.ts";
import { grad, type NestedNumbers, scope, type Tensor, tensor } from "../../src/entries/tensor.ts";
import type { Cube, Row, Table } from "./slow.ts";
import * as slow from "./slow.ts";

const numTexts = 6;
const length = 7;
const vocabulary = 5;

/** Numbers in [−1, 1), the same for each run. */
function drawing(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

const random = drawing(11);
const row = (size: number, of = () => 2 * random()): number[] => Array.from({ length: size }, of);
const table = (of = () => 2 * random()): number[][] =>
  Array.from({ length: numTexts }, () => row(length, of));
const cube = (): number[][][] =>
  Array.from({ length: numTexts }, () => Array.from({ length }, () => row(vocabulary)));
const negative = () => -1.6 - 1.5 * random();

/** The answers: one has a gap, which the policy did not write, and one a single token. */
const mask: Table = [
  [0, 1, 1, 1, 1, 1, 1],
  [0, 0, 1, 1, 0, 0, 0],
  [0, 1, 1, 0, 1, 1, 0],
  [0, 0, 0, 1, 1, 1, 1],
  [0, 0, 0, 0, 0, 1, 0],
  [0, 1, 1, 1, 0, 0, 0],
];
const tokens = table(() => Math.floor(((random() + 1) / 2) * vocabulary));
const pairs = () => ({
  chosen: row(numTexts, negative),
  rejected: row(numTexts, negative),
  referenceChosen: row(numTexts, negative),
  referenceRejected: row(numTexts, negative),
});

type Given = Readonly<Record<string, Row | Table | Cube>>;
type Tensors = Readonly<Record<string, Tensor>>;

interface Case<G = Given> {
  readonly given: G;
  /** The inputs that the loss has gradients by. */
  readonly trained: readonly (keyof G & string)[];
  readonly loss: (tensors: { readonly [N in keyof G]: Tensor }) => Tensor;
  readonly slow: (given: G) => number;
}

/** A case whose functions know the names of what is given. */
const caseOf = <G extends Given>(each: Case<G>) => each as unknown as Case;

const weightsOf = (of: { readonly mask: Tensor }, mean: "sequence" | "token" | number = "token") =>
  tokenWeights(of.mask, mean);

const clipping = { below: 0.2, above: 0.2, ratio: "token", dual: Infinity, mean: "sequence" } as const;
function policyCase(changed: Partial<slow.Clipping>, tokenwise = false): Case {
  const settings: slow.Clipping = { ...clipping, ...changed };
  const logProbs = table(negative);
  const old = logProbs.map((each) => each.map((value) => value + 0.4 * random()));
  const ofTexts = row(numTexts);
  const advantages = tokenwise ? table() : ofTexts.map((each) => row(length, () => each));
  return caseOf({
    given: { logProbs, old, mask, advantages, ofTexts },
    trained: ["logProbs"],
    loss: (of) =>
      policyLoss(
        {
          logProbs: of.logProbs,
          oldLogProbs: of.old,
          advantages: tokenwise ? of.advantages : of.ofTexts,
          weights: weightsOf(of, settings.mean),
        },
        {
          clip: settings.below === settings.above ? settings.below : [settings.below, settings.above],
          ratio: settings.ratio,
          dualClip: settings.dual === Infinity ? undefined : settings.dual,
        },
      ),
    slow: (of) => slow.policy(of, settings),
  });
}

const distillationCase = (divergence: "forward" | "reverse" | number, temperature: number): Case =>
  caseOf({
    given: { student: cube(), teacher: cube(), mask },
    trained: ["student"],
    loss: (of) => distillationLoss(of.student, of.teacher, weightsOf(of), { divergence, temperature }),
    slow: ({ student, teacher }) => slow.distillation(student, teacher, mask, divergence, temperature),
  });

const klCase = (estimator: "k1" | "k2" | "k3"): Case =>
  caseOf({
    given: { policy: table(negative), reference: table(negative), mask },
    trained: ["policy"],
    loss: (of) => weighedMean(klEstimate(of.policy, of.reference, estimator), weightsOf(of, "sequence")),
    slow: ({ policy, reference }) =>
      slow.weighedMean(
        policy.map((each, n) => each.map((p, t) => slow.kl(estimator, p, reference[n]![t]!))),
        mask,
        "sequence",
      ),
  });

const cases: Readonly<Record<string, Case>> = {
  "log-probabilities of tokens, at a temperature": caseOf({
    given: { logits: cube(), mask },
    trained: ["logits"],
    loss: (of) =>
      weighedMean(tokenLogProbs(of.logits, tensor(tokens, { dtype: "int64" }), 0.7), weightsOf(of, 9)),
    slow: ({ logits }) => slow.weighedMean(slow.tokenLogProbs(logits, tokens, 0.7), mask, 9),
  }),
  "the sum of each text": caseOf({
    given: { logProbs: table(negative), mask },
    trained: ["logProbs"],
    loss: (of) => textLogProbs(of.logProbs, of.mask).square().mean(),
    slow: ({ logProbs }) =>
      slow.meanOf(logProbs.map((each, n) => slow.sumOf(each.map((p, t) => p * mask[n]![t]!)) ** 2)),
  }),
  "a reward model, with margins": caseOf({
    given: { chosen: row(numTexts), rejected: row(numTexts), margins: row(numTexts) },
    trained: ["chosen", "rejected"],
    loss: (of) => rewardModelLoss(of.chosen, of.rejected, of.margins),
    slow: ({ chosen, rejected, margins }) => slow.rewardModel(chosen, rejected, margins),
  }),
  "a reward model": caseOf({
    given: { chosen: row(numTexts), rejected: row(numTexts) },
    trained: ["chosen", "rejected"],
    loss: (of) => rewardModelLoss(of.chosen, of.rejected),
    slow: ({ chosen, rejected }) =>
      slow.rewardModel(
        chosen,
        rejected,
        row(numTexts, () => 0),
      ),
  }),
  DPO: caseOf({
    given: pairs(),
    trained: ["chosen", "rejected"],
    loss: (of) => dpoLoss(of, { beta: 0.3 }),
    slow: (of) => slow.dpo(of, 0.3, 0),
  }),
  "DPO with smoothed labels": caseOf({
    given: pairs(),
    trained: ["chosen", "rejected"],
    loss: (of) => dpoLoss(of, { labelSmoothing: 0.1 }),
    slow: (of) => slow.dpo(of, 0.1, 0.1),
  }),
  IPO: caseOf({
    given: pairs(),
    trained: ["chosen", "rejected"],
    loss: (of) => ipoLoss(of, { beta: 0.4 }),
    slow: (of) => slow.ipo(of, 0.4),
  }),
  "KTO with weights, and a divergence from other prompts": caseOf({
    given: {
      logProbs: row(numTexts, negative),
      reference: row(numTexts, negative),
      isGood: [1, 0, 0, 1, 1, 0],
      others: row(numTexts, () => 0.5 + random()),
    },
    trained: ["logProbs"],
    loss: (of) =>
      ktoLoss(
        { logProbs: of.logProbs, referenceLogProbs: of.reference, isGood: of.isGood },
        { beta: 0.5, kl: of.others.mean(), goodWeight: 1.3, badWeight: 0.8 },
      ),
    slow: ({ logProbs, reference, isGood, others }) =>
      slow.kto(logProbs, reference, isGood, { beta: 0.5, kl: slow.meanOf(others), good: 1.3, bad: 0.8 }),
  }),
  "KTO, where the divergence is below 0": caseOf({
    given: {
      logProbs: row(numTexts, negative),
      reference: row(numTexts, negative),
      isGood: [1, 1, 0, 1, 0, 0],
      others: row(numTexts, () => random() - 1),
    },
    trained: ["logProbs"],
    loss: (of) =>
      ktoLoss(
        { logProbs: of.logProbs, referenceLogProbs: of.reference, isGood: of.isGood },
        { kl: of.others.mean() },
      ),
    slow: ({ logProbs, reference, isGood }) =>
      slow.kto(logProbs, reference, isGood, { beta: 0.1, kl: 0, good: 1, bad: 1 }),
  }),
  ORPO: caseOf({
    given: { chosen: row(numTexts, negative), rejected: row(numTexts, negative) },
    trained: ["chosen", "rejected"],
    loss: (of) => orpoLoss(of, { lambda: 0.25 }),
    slow: ({ chosen, rejected }) => slow.orpo(chosen, rejected, 0.25),
  }),
  "distillation forward": distillationCase("forward", 1),
  "distillation in reverse": distillationCase("reverse", 1.5),
  "distillation by Jensen and Shannon": distillationCase(0.3, 0.8),
  k1: klCase("k1"),
  k2: klCase("k2"),
  k3: klCase("k3"),
  GRPO: policyCase({}),
  "GRPO by token, clipped higher (DAPO)": policyCase({ above: 0.28, mean: "token" }),
  "GRPO by a constant length (Dr. GRPO)": policyCase({ mean: 9 }),
  "GRPO with a ratio of each text (GSPO)": policyCase({ below: 0.03, above: 0.04, ratio: "mean" }),
  "RLOO, a product of ratios": policyCase({ ratio: "product" }),
  "PPO, an advantage of each token": policyCase({ mean: "token" }, true),
  "PPO, clipped twice": policyCase({ dual: 1.3, mean: "token" }, true),
  "PPO's values": (() => {
    const old = table();
    return caseOf({
      given: { values: old.map((each) => each.map((v) => v + random())), old, returns: table(), mask },
      trained: ["values"],
      loss: (of) =>
        valueLoss(
          { values: of.values, oldValues: of.old, returns: of.returns, weights: weightsOf(of) },
          { clip: 0.5 },
        ),
      slow: ({ values, old, returns }) => slow.value(values, old, returns, mask, 0.5),
    });
  })(),
};

const tensorsOf = (given: Given, dtype: "float32" | "float64", trained: readonly string[] = []): Tensors =>
  Object.fromEntries(
    Object.entries(given).map(([name, values]) => {
      const made = tensor(values as NestedNumbers, { dtype });
      return [name, trained.includes(name) ? made.requiresGrad_() : made];
    }),
  );

/** The values with one of them moved, at each place, with the numbers flat. */
function differences(given: Given, name: string, of: (given: Given) => number): number[] {
  const step = 1e-5;
  const moved = (values: unknown, place: { left: number }, by: number): unknown =>
    Array.isArray(values)
      ? values.map((each) => moved(each, place, by))
      : (values as number) + (place.left-- === 0 ? by : 0);
  const at = (index: number, by: number) =>
    of({ ...given, [name]: moved(given[name], { left: index }, by) as Row });
  const count = (given[name] as unknown[]).flat(2).length;
  return Array.from({ length: count }, (_, index) => (at(index, step) - at(index, -step)) / (2 * step));
}

function expectClose(found: ArrayLike<number>, expected: readonly number[], tolerance: number): void {
  expect(found).toHaveLength(expected.length);
  const worst = Math.max(
    ...Array.from(found, (value, index) => Math.abs(value - (expected[index] as number))),
  );
  expect(worst).toBeLessThan(tolerance);
}

const numbersOf = (of: Tensor): number[] => Array.from(of.toTypedArray() as Float64Array, Number);

describe.each(Object.entries(cases))("%s", (_, { given, trained, loss, slow: reference }) => {
  const expected = reference(given);

  it("has the loss of the slow implementation, to 1e-6", () => {
    const [wide, single] = scope(() => [
      loss(tensorsOf(given, "float64")).item(),
      loss(tensorsOf(given, "float32")).item(),
    ]) as [number, number];
    expect(Math.abs(wide - expected)).toBeLessThan(1e-12);
    expect(Math.abs(single - expected)).toBeLessThan(1e-6);
  });

  it("has the gradients of finite differences, to 1e-6", () => {
    scope(() => {
      const tensors = tensorsOf(given, "float64", trained);
      const gradients = grad(
        loss(tensors),
        trained.map((name) => tensors[name] as Tensor),
      );
      for (const [index, name] of trained.entries()) {
        const found = numbersOf(gradients[index] as Tensor);
        expectClose(
          found,
          differences(given, name, (moved) => reference(moved)),
          1e-6,
        );
      }
    });
  });
});

describe("advantages are those of the slow implementation, to 1e-6", () => {
  const rewards = row(numTexts);
  const values = table();
  const ofTokens = table();
  const policy = table(negative);
  const reference = table(negative);
  const texts = (dtype: "float32" | "float64") => {
    const of = tensorsOf({ rewards, policy, reference, mask }, dtype);
    return {
      rewards: of.rewards!,
      logProbs: of.policy!,
      referenceLogProbs: of.reference!,
      mask: of.mask!,
    };
  };

  const same = (of: (dtype: "float32" | "float64") => Tensor, expected: Row | Table) =>
    scope(() => {
      expectClose(numbersOf(of("float64")), expected.flat(), 1e-7);
      expectClose(
        numbersOf(of("float32")),
        expected.flat(),
        1e-6 * Math.max(1, ...expected.flat().map(Math.abs)),
      );
    });

  it.each(["group", "batch", "none"] as const)("by group, divided by: %s", (divideBy) => {
    same(
      (dtype) => groupAdvantages(tensor(rewards, { dtype }), 3, { divideBy }),
      slow.groupAdvantages(rewards, 3, divideBy),
    );
  });

  it("by group, where all samples are alike, are 0", () => {
    scope(() => expect(numbersOf(groupAdvantages(tensor([1, 1, 0, 0]), 2))).toEqual([0, 0, 0, 0]));
    scope(() => expect(numbersOf(groupAdvantages(tensor([3, 4]), 1))).toEqual([0, 0]));
  });

  it("by leaving one out", () => {
    same((dtype) => leaveOneOutAdvantages(tensor(rewards, { dtype }), 2), slow.leaveOneOut(rewards, 2));
  });

  it("by REINFORCE++", () => {
    const each = slow.tokenRewards(rewards, policy, reference, mask, 0.2);
    const zeros = each.map((line) => line.map(() => 0));
    same((dtype) => tokenRewards(texts(dtype), 0.2), each);
    same(
      (dtype) => reinforcePlusPlusAdvantages(texts(dtype), { klFactor: 0.2 }),
      slow.whitened(slow.gae(each, zeros, mask, 1, 1), mask),
    );
  });

  it("by GAE, over tokens that the policy did not write", () => {
    const of = (dtype: "float32" | "float64") => {
      const made = tensorsOf({ rewards: ofTokens, values, mask }, dtype);
      return generalizedAdvantages(made as never, { gamma: 0.9, lambda: 0.8 });
    };
    const expected = slow.gae(ofTokens, values, mask, 0.9, 0.8);
    same((dtype) => of(dtype).advantages, expected);
    const returns = expected.map((line, n) => line.map((each, t) => (each + values[n]![t]!) * mask[n]![t]!));
    same((dtype) => of(dtype).returns, returns);
    same(
      (dtype) => whitened(of(dtype).advantages, tensor(mask as NestedNumbers, { dtype })),
      slow.whitened(expected, mask),
    );
  });

  it("of texts that are too long", () => {
    const lengths = [0, 5, 6, 7, 9, 10, 11, 30];
    const limits = { maxTokens: 10, buffer: 4 };
    same((dtype) => overlongPenalties(tensor(lengths, { dtype }), limits), slow.overlong(lengths, 10, 4));
  });

  it.each([
    [{ maxTokens: 10, buffer: 0 }, [0, 0, 0, -1]],
    [{ maxTokens: 10, buffer: 1 }, [0, 0, -1, -1]],
  ])("of texts that are too long, at the limit: %o", (limits, expected) => {
    const lengths = [0, 9, 10, 11];
    expect(slow.overlong(lengths, limits.maxTokens, limits.buffer)).toEqual(expected);
    scope(() => expect(numbersOf(overlongPenalties(tensor(lengths), limits).add(0))).toEqual(expected));
  });

  it("have no graph", () => {
    scope(() => expect(groupAdvantages(tensor(rewards).requiresGrad_(), 2).requiresGrad).toBe(false));
  });
});

describe("the loss of a step", () => {
  it.each(["sequence", "token", 9] as const)(
    "does not depend on how its texts are shared, with weights by %s",
    (mean) => {
      const { given, loss } = policyCase({ mean });
      const halves = (half: number): Given =>
        Object.fromEntries(
          Object.entries(given).map(([name, rows]) => [name, rows.slice(3 * half, 3 * half + 3)]),
        ) as Given;
      scope(() => {
        const whole = tensorsOf(given, "float64");
        const weights = tokenWeights(whole.mask!, mean);
        const of = (tensors: Tensors, part: Tensor) =>
          policyLoss({
            logProbs: tensors.logProbs!,
            oldLogProbs: tensors.old!,
            advantages: tensors.ofTexts!,
            weights: part,
          }).item();
        const parts = [0, 1].map((half) =>
          of(tensorsOf(halves(half), "float64"), weights.narrow(0, 3 * half, 3)),
        );
        expect(Math.abs(slow.meanOf(parts) - loss(whole).item())).toBeLessThan(1e-12);
      });
    },
  );
});

describe("is refused in one sentence", () => {
  const refused = (of: () => unknown, message: string) => expect(() => scope(of)).toThrow(message);

  it.each([
    [
      () => weighedMean(tensor([[1, 2]]), tensor([1, 2])),
      "[weighedMean] expected weights of shape [1,2], as values, got [2]",
    ],
    [
      () => dpoLoss({ ...tensorsOf(pairs(), "float32"), rejected: tensor([1]) } as never),
      "[dpoLoss] expected rejected of shape [6], as chosen, got [1]",
    ],
    [
      () => groupAdvantages(tensor([1, 2, 3]), 2),
      "[groupAdvantages] expected rewards [N] of groups of 2, got [3]",
    ],
    [
      () => leaveOneOutAdvantages(tensor([1, 2, 3]), 1),
      "[leaveOneOutAdvantages] expected at least 2 samples of a prompt, got 1",
    ],
    [() => tokenWeights(tensor([[1]]), 0), "[tokenWeights] expected a divisor above 0, got 0"],
    [
      () => policyLoss({ logProbs: tensor([[1, 2]]), advantages: tensor([1, 2]), weights: tensor([[1, 1]]) }),
      "[policyLoss] expected advantages of shape [1,1], as logProbs, got [2,1]",
    ],
  ] as const)("what does not fit: %#", (of, message) => refused(of, message));

  const ones = () => tensor([[1, 1]]);
  const texts = () => ({ logProbs: ones(), advantages: ones(), weights: ones() });
  const distilled = (options: object) => () => distillationLoss(ones(), ones(), ones(), options);
  const valued = () => ({ values: ones(), oldValues: ones(), returns: ones(), weights: ones() });
  const rewarded = () => ({
    rewards: tensor([1]),
    logProbs: ones(),
    referenceLogProbs: ones(),
    mask: ones(),
  });
  const preferred = () => tensorsOf(pairs(), "float32") as never;

  it.each([
    [
      () => policyLoss(texts(), { ratio: "sequence" as never }),
      "[policyLoss] expected a ratio by token, mean or product, got sequence",
    ],
    [
      () => groupAdvantages(tensor([1, 2]), 2, { divideBy: "std" as never }),
      "[groupAdvantages] expected to divide by group, batch or none, got std",
    ],
    [
      () => tokenWeights(ones(), "tokens" as never),
      "[tokenWeights] expected a mean by a number, sequence or token, got tokens",
    ],
    [
      () => klEstimate(ones(), ones(), "kl" as never),
      "[klEstimate] expected the estimator k1, k2 or k3, got kl",
    ],
    ...(["jsd", -0.1, 1.5, Number.NaN] as const).map(
      (divergence) =>
        [
          distilled({ divergence }),
          `[distillationLoss] expected divergence forward, reverse or a number from 0 to 1, got ${divergence}`,
        ] as const,
    ),
    [
      () => overlongPenalties(tensor([1]), { maxTokens: 2, buffer: -1 }),
      "[overlongPenalties] expected a buffer of 0 or more tokens, got -1",
    ],
  ] as const)("a value that would be another method: %#", (of, message) => refused(of, message));

  it.each([
    ["distillationLoss", distilled({ temprature: 2 }), "temprature (did you mean temperature?)"],
    [
      "policyLoss",
      () => policyLoss(texts(), { dual_clip: 3 } as object),
      "dual_clip (did you mean dualClip?)",
    ],
    ["valueLoss", () => valueLoss(valued(), { epsilon: 1 } as object), "epsilon (there are clip)"],
    [
      "groupAdvantages",
      () => groupAdvantages(tensor([1, 2]), 2, { eps: 1 } as object),
      "eps (there are divideBy, epsilon)",
    ],
    [
      "reinforcePlusPlusAdvantages",
      () => reinforcePlusPlusAdvantages(rewarded(), { kl_factor: 1 } as object),
      "kl_factor (did you mean klFactor?)",
    ],
    [
      "generalizedAdvantages",
      () => generalizedAdvantages({ ...rewarded(), values: ones() }, { lamda: 1 } as object),
      "lamda (did you mean lambda?)",
    ],
    [
      "overlongPenalties",
      () => overlongPenalties(tensor([1]), { maxTokens: 2, bufer: 1 } as never),
      "bufer (did you mean buffer?)",
    ],
    [
      "dpoLoss",
      () => dpoLoss(preferred(), { label_smoothing: 0.1 } as object),
      "label_smoothing (did you mean labelSmoothing?)",
    ],
    ["ipoLoss", () => ipoLoss(preferred(), { tau: 1 } as object), "tau (there are beta)"],
    [
      "ktoLoss",
      () => ktoLoss(preferred(), { good_weight: 2 } as object),
      "good_weight (did you mean goodWeight?)",
    ],
    ["orpoLoss", () => orpoLoss(preferred(), { beta: 1 } as object), "beta (there are lambda)"],
  ] as const)("an option that %s does not have", (name, of, got) =>
    refused(of, `[${name}] expected an option, got ${got}`),
  );
});
