import { TroupeError } from "../../errors/index.ts";

/**
 * Checks that ranks which make a step together train the same parameters in it: else they would wait for each other for ever.
 * @param step - from 0
 * @param frozen - by rank of the world, the names of the parameters that are not trained there
 * @throws {TroupeError} `PARAMETER_TRAINABLE` with the first parameter that only some of them train, and the ranks
 */
export function checkTrainedAlike(step: number, frozen: ReadonlyMap<number, readonly string[]>): void {
  const sets = new Map([...frozen].map(([rank, names]) => [rank, new Set(names)]));
  for (const name of new Set([...frozen.values()].flat())) {
    const isFrozen = (rank: number) => sets.get(rank)?.has(name) === true;
    const ranks = [...sets.keys()];
    const trained = ranks.filter((rank) => !isFrozen(rank));
    if (trained.length > 0) throw trainedOtherwise(step, name, ranks.filter(isFrozen), trained);
  }
}

function trainedOtherwise(
  step: number,
  name: string,
  frozen: readonly number[],
  trained: readonly number[],
): TroupeError {
  return new TroupeError("PARAMETER_TRAINABLE", {
    where: `step ${step}`,
    expected: `${name} to be trained by all ranks or by none`,
    got: `it frozen on ${ranksOf(frozen)}, trained on ${ranksOf(trained)}`,
    hint: "set trainable by what all ranks know alike, such as rank.numSteps, and not by a rank's own batch",
    fields: { step, name, frozen, trained },
  });
}

const ranksOf = (ranks: readonly number[]) => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
