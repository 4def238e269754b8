import { checkTrainedAlike } from "../../../compute/parallel/index.ts";
import type { RankStepped } from "../../protocols/index.ts";

/** Checks that all ranks have trained the same parameters in each step: else their shards would wait for each other for ever. */
export class AgreedTraining {
  /** The frozen parameters of each rank, as last reported. */
  #frozen: readonly (readonly string[])[] = [];

  /**
   * @param step - steps done, this one included; each in its turn
   * @param ranks - in rank order
   * @throws {TroupeError} `PARAMETER_TRAINABLE` with the first parameter, and the ranks
   */
  review(step: number, ranks: readonly RankStepped[]): void {
    if (ranks.every(({ frozen }) => frozen === undefined)) return;
    this.#frozen = ranks.map(({ frozen }, rank) => frozen ?? this.#frozen[rank] ?? []);
    checkTrainedAlike(step - 1, new Map(this.#frozen.entries()));
  }
}
