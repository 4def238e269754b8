import { TroupeError } from "../../errors.ts";
import type { RankStepped } from "../../protocols/index.ts";

/** Makes sure that all ranks train the same parameters in each step: their shards would wait for each other for ever. */
export class AgreedTraining {
  /** What each rank does not train, as it has told last. */
  #frozen: readonly (readonly string[])[] = [];

  /**
   * @param step - steps done, this one included; each in its turn
   * @param ranks - in rank order
   * @throws {TroupeError} `PARAMETER_TRAINABLE` naming the first parameter, and the ranks
   */
  review(step: number, ranks: readonly RankStepped[]): void {
    if (ranks.every(({ frozen }) => frozen === undefined)) return;
    this.#frozen = ranks.map(({ frozen }, rank) => frozen ?? this.#frozen[rank] ?? []);
    const sets = this.#frozen.map((names) => new Set(names));
    for (const name of new Set(this.#frozen.flat())) {
      const { frozen = [], trained = [] } = Object.groupBy(sets.keys(), (rank) =>
        sets[rank]?.has(name) ? "frozen" : "trained",
      );
      if (trained.length > 0) throw trainedOtherwise(step - 1, name, frozen, trained);
    }
  }
}

function trainedOtherwise(
  step: number,
  name: string,
  frozen: readonly number[],
  trained: readonly number[],
): TroupeError {
  return new TroupeError(
    "PARAMETER_TRAINABLE",
    {
      where: `step ${step}`,
      expected: `${name} to be trained by all ranks or by none`,
      got: `it frozen on ${ranksOf(frozen)}, trained on ${ranksOf(trained)}`,
      hint: "set trainable by what all ranks know alike, such as rank.numSteps, and not by a rank's own batch",
    },
    { fields: { step, name, frozen, trained } },
  );
}

const ranksOf = (ranks: readonly number[]) => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
