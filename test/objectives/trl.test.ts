import { describe, expect, it } from "vitest";
import {
  distillationLoss,
  dpoLoss,
  ipoLoss,
  klEstimate,
  ktoLoss,
  orpoLoss,
  overlongPenalties,
  policyLoss,
  rewardModelLoss,
  textLogProbs,
  tokenLogProbs,
  tokenWeights,
  weighedMean,
} from "../../src/entries/objectives.ts";
import { grad, type NestedNumbers, scope, type Tensor, tensor } from "../../src/entries/tensor.ts";
import trl from "./trl.json" with { type: "json" };

// TRL's file has 10 digits of each gradient, of losses all.
const TOLERANCE = 1e-9;

const float64 = (values: NestedNumbers) => tensor(values, { dtype: "float64" });
const ids = (values: NestedNumbers) => tensor(values, { dtype: "int64" });

interface Expected {
  readonly loss: number;
  readonly gradient: NestedNumbers;
}

function expectSame(loss: Tensor, leaf: Tensor, expected: Expected, tolerance = TOLERANCE): void {
  expect(Math.abs(loss.item() - expected.loss)).toBeLessThan(tolerance);
  const [gradient] = grad(loss, leaf);
  expect(gradient?.sub(float64(expected.gradient)).abs().max().item()).toBeLessThan(tolerance);
}

interface Answers {
  readonly tokens: NestedNumbers;
  readonly mask: NestedNumbers;
  readonly policy: NestedNumbers;
  readonly reference: NestedNumbers;
}

/** Log-probabilities of answers by two models, from their logits, as TRL computes them; and the number of their tokens. */
function answersOf({ tokens, mask, policy, reference }: Answers, mean = false) {
  const logits = float64(policy).requiresGrad_();
  const rest = ids(tokens).shape[1]! - 1;
  const counted = float64(mask).narrow(1, 1, rest);
  const weights = mean ? tokenWeights(counted, "sequence") : counted;
  const of = (given: Tensor) =>
    textLogProbs(tokenLogProbs(given.narrow(1, 0, rest), ids(tokens).narrow(1, 1, rest)), weights);
  return { logits, logProbs: of(logits), referenceLogProbs: of(float64(reference)) };
}

describe(`as in TRL ${trl.trl}`, () => {
  it("log-probabilities of tokens", () => {
    scope(() => {
      const logits = float64(trl.logProbs.logits).requiresGrad_();
      const found = tokenLogProbs(logits, ids(trl.logProbs.tokens));
      expect(found.sub(float64(trl.logProbs.logProbs)).abs().max().item()).toBeLessThan(TOLERANCE);
      expectSame(found.sum(), logits, trl.logProbs);
    });
  });

  it.each(
    trl.preferences.map(
      (expected) => [expected.kind === "ipo" ? "IPO" : "DPO", expected.beta, expected] as const,
    ),
  )("%s with β = %d", (name, beta, expected) => {
    scope(() => {
      // TRL, as IPO's authors, takes means over tokens.
      const { logits, logProbs, referenceLogProbs } = answersOf(expected, name === "IPO");
      const [chosen, rejected] = logProbs.chunk(2) as [Tensor, Tensor];
      const [referenceChosen, referenceRejected] = referenceLogProbs.chunk(2) as [Tensor, Tensor];
      const pairs = { chosen, rejected, referenceChosen, referenceRejected };
      expectSame((name === "IPO" ? ipoLoss : dpoLoss)(pairs, { beta }), logits, expected);
    });
  });

  it.each(trl.kto.map((expected) => [expected.beta, expected] as const))(
    "KTO with β = %d",
    (beta, expected) => {
      scope(() => {
        const { logits, logProbs, referenceLogProbs } = answersOf(expected);
        const [goodWeight, badWeight] = expected.weights as [number, number];
        const options = { beta, kl: float64(expected.ofOthers).mean(), goodWeight, badWeight };
        const isGood = ids(expected.isGood);
        expectSame(ktoLoss({ logProbs, referenceLogProbs, isGood }, options), logits, expected);
      });
    },
  );

  it("ORPO's odds, which TRL computes in float32", () => {
    scope(() => {
      const chosen = float64(trl.orpo.chosen).requiresGrad_();
      const loss = orpoLoss({ chosen, rejected: float64(trl.orpo.rejected) }, { lambda: trl.orpo.beta });
      expectSame(loss.add(chosen.mean()), chosen, trl.orpo, 1e-6);
    });
  });

  it.each(trl.rewardModel)("reward models: %#", ({ rewards, margins, loss }) => {
    scope(() => {
      const [chosen, rejected] = float64(rewards).chunk(2) as [Tensor, Tensor];
      const found = rewardModelLoss(chosen, rejected, margins === null ? undefined : float64(margins));
      expect(Math.abs(found.item() - loss)).toBeLessThan(TOLERANCE);
    });
  });

  const means = { grpo: "sequence", dapo: "token", dr_grpo: 10 } as const;
  it.each(trl.policies.map((expected) => [JSON.stringify(expected.setting), expected] as const))(
    "GRPO: %s",
    (_, expected) => {
      scope(() => {
        const {
          loss_type,
          beta = 0,
          epsilon_high = 0.2,
          delta,
          importance_sampling_level,
          isOld,
        } = expected.setting;
        const logProbs = float64(expected.logProbs).requiresGrad_();
        const weights = tokenWeights(float64(expected.mask), means[loss_type as keyof typeof means]);
        const loss = policyLoss(
          {
            logProbs,
            oldLogProbs: isOld === false ? undefined : float64(expected.old),
            advantages: float64(expected.advantages),
            weights,
          },
          {
            clip: [0.2, epsilon_high],
            ratio: importance_sampling_level === "sequence" ? "mean" : "token",
            dualClip: delta,
          },
        );
        const divergence = weighedMean(klEstimate(logProbs, float64(expected.reference), "k3"), weights);
        expectSame(loss.add(divergence.mul(beta)), logProbs, expected);
      });
    },
  );

  it("RLOO", () => {
    scope(() => {
      const logProbs = float64(trl.rloo.logProbs).requiresGrad_();
      const weights = tokenWeights(float64(trl.rloo.mask), "sequence");
      const advantages = float64(trl.rloo.advantages);
      const oldLogProbs = float64(trl.rloo.old);
      expectSame(
        policyLoss({ logProbs, oldLogProbs, advantages, weights }, { ratio: "product" }),
        logProbs,
        trl.rloo,
      );
    });
  });

  it.each(trl.distillation.map((expected) => [expected.beta, expected.temperature, expected] as const))(
    "distillation with β = %d at temperature %d",
    (beta, temperature, expected) => {
      scope(() => {
        const student = float64(expected.student).requiresGrad_();
        const weights = tokenWeights(float64(expected.mask), "token");
        const loss = distillationLoss(student, float64(expected.teacher), weights, {
          divergence: beta,
          temperature,
        });
        expectSame(loss, student, expected);
      });
    },
  );

  it("penalties of long texts", () => {
    scope(() => {
      const found = overlongPenalties(float64(trl.overlong.lengths), { maxTokens: 100, buffer: 20 });
      expect(Array.from(found.toTypedArray() as Float64Array)).toEqual(
        trl.overlong.penalties.map((each) => each + 0),
      );
    });
  });
});
