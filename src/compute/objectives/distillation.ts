import { ops, type Tensor } from "../tensor/index.ts";
import { argument, checkOptions, checkShapes, widened } from "./check.ts";
import { weighedMean } from "./log-probs.ts";

/** Options of {@link distillationLoss}. */
export interface DistillationOptions {
  /**
   * - `"forward"`: KL(teacher ‖ student), which covers all that the teacher may say (Hinton et al. 2015,
   *   https://arxiv.org/abs/1503.02531);
   * - `"reverse"`: KL(student ‖ teacher), which keeps to what it is likely to say (Gu et al. 2023,
   *   https://arxiv.org/abs/2306.08543);
   * - a number β between 0 and 1: the generalized Jensen–Shannon divergence, β KL(teacher ‖ m) + (1 − β) KL(student ‖ m), of
   *   m = β teacher + (1 − β) student (Agarwal et al. 2023, https://arxiv.org/abs/2306.13649). 0 is forward and 1 reverse, as
   *   in TRL's GKD.
   *
   * Default: forward.
   */
  readonly divergence?: "forward" | "reverse" | number;
  /** Divides both logits. Default: 1. */
  readonly temperature?: number;
}

/**
 * The divergence of a student from its teacher at each counted token, over all words. The texts may be a dataset's, or what
 * the student wrote (on-policy distillation).
 * @param student - logits [N, T, V]
 * @param teacher - logits [N, T, V]; no gradient reaches them
 * @param weights - [N, T], see {@link tokenWeights}
 * @returns a scalar, in nats
 * @throws {TroupeError} `TENSOR_ARGUMENT` for an option out of range, or that it does not have
 */
export function distillationLoss(
  student: Tensor,
  teacher: Tensor,
  weights: Tensor,
  options: DistillationOptions = {},
): Tensor {
  checkOptions("distillationLoss", options, { divergence: true, temperature: true });
  const { divergence = "forward", temperature = 1 } = options;
  const beta = mixtureOf(divergence);
  checkShapes("distillationLoss", { student, teacher });
  const logProbsOf = (logits: Tensor) => widened(logits).div(temperature).logSoftmax(-1);
  const ofStudent = logProbsOf(student);
  const ofTeacher = logProbsOf(teacher.detach());
  if (beta === 0) return weighedMean(divergenceOf(ofTeacher, ofStudent), weights);
  if (beta === 1) return weighedMean(divergenceOf(ofStudent, ofTeacher), weights);
  const mixed = ops.logaddexp(ofTeacher.add(Math.log(beta)), ofStudent.add(Math.log(1 - beta)));
  const ofBoth = divergenceOf(ofTeacher, mixed)
    .mul(beta)
    .add(divergenceOf(ofStudent, mixed).mul(1 - beta));
  return weighedMean(ofBoth, weights);
}

/** The teacher's share β of the mixture. Of one model alone the divergence is 0, so 0 and 1 stand for the two others. */
function mixtureOf(divergence: "forward" | "reverse" | number): number {
  if (divergence === "forward") return 0;
  if (divergence === "reverse") return 1;
  if (typeof divergence === "number" && divergence >= 0 && divergence <= 1) return divergence;
  throw argument("distillationLoss", "divergence forward, reverse or a number from 0 to 1", divergence);
}

/** KL(p ‖ q) of log-probabilities [N, T, V]: [N, T]. */
function divergenceOf(p: Tensor, q: Tensor): Tensor {
  return p.exp().mul(p.sub(q)).sum([-1]);
}
