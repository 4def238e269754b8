import type { ExpertConfig } from "../../library/models/index.ts";
import type { Arguments } from "./arguments.ts";
import { argumentError } from "./run-parts.ts";

/** Settings of experts except their number. */
const howTokensAreDealt = [
  ...["topk", "moeLossCoeff", "moeTrainCapacityFactor", "moeEvalCapacityFactor"],
  ...["moeMinCapacity", "moeTokenDropping", "mlpType"],
];

/** Settings of experts, read by models with experts only. */
export const ofExperts: readonly string[] = ["numExperts", ...howTokensAreDealt];

/** Settings that are not read without experts. */
export function unreadExperts({ numExperts }: Arguments): readonly string[] {
  return numExperts > 0 ? [] : howTokensAreDealt;
}

/**
 * Reads the experts' settings, by DeepSpeed's names and Megatron's.
 * @throws {TroupeError} `ARGUMENTS` unless `--topk` is 1 or 2, or if the run starts from existing weights
 */
export function expertsOf(args: Arguments): ExpertConfig {
  const { topk: k, pretrainedModelNameOrPath, loadedWeights, fresh, mlpType } = args;
  if (k !== 1 && k !== 2) throw argumentError("--topk 1 or 2", `${k}`);
  if (loadedWeights !== "" || (pretrainedModelNameOrPath !== "" && !fresh))
    throw argumentError(
      "--num-experts with weights that are drawn",
      "a folder whose weights have no experts",
      "--fresh draws them",
    );
  return {
    numExperts: args.numExperts,
    auxiliaryWeight: args.moeLossCoeff,
    residual: mlpType === "residual",
    mixture: {
      k,
      capacityFactor: args.moeTrainCapacityFactor,
      evalCapacityFactor: args.moeEvalCapacityFactor,
      minCapacity: args.moeMinCapacity,
      dropTokens: args.moeTokenDropping,
    },
  };
}
