import { TroupeError } from "../../errors/index.ts";

/**
 * Checks that ranks which make a step together train the same parameters in it: else they would wait for each other for ever.
 * @param step - from 0
 * @param frozen - by rank of the world, the names of the parameters that are not trained there
 * @throws {TroupeError} `PARAMETER_TRAINABLE` with the first parameter that only some of them train, and the ranks
 */
export function checkTrainedAlike(step: number, frozen: ReadonlyMap<number, readonly string[]>): void {
  const sets = [...frozen].map(([rank, names]) => [rank, new Set(names)] as const);
  for (const name of new Set([...frozen.values()].flat())) {
    const untrained = sets.flatMap(([rank, names]) => (names.has(name) ? rank : []));
    const trained = sets.flatMap(([rank, names]) => (names.has(name) ? [] : rank));
    if (trained.length === 0) continue;
    throw new TroupeError("PARAMETER_TRAINABLE", {
      where: `step ${step}`,
      expected: `${name} to be trained by all ranks or by none`,
      got: `it frozen on ${say(untrained)}, trained on ${say(trained)}`,
      hint: "set trainable by what all ranks know alike, such as rank.numSteps, and not by a rank's own batch",
      fields: { step, name, frozen: untrained, trained },
    });
  }
}

const say = (ranks: readonly number[]) => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
