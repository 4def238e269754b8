import { Mesh, type MeshShape } from "../../../compute/parallel/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { RankStepped } from "../../protocols/index.ts";

/** Checks that ranks which split layers have computed one loss: else they have trained on different inputs. */
export class AgreedLosses {
  readonly #mesh: Mesh;

  constructor(mesh: Partial<MeshShape>) {
    this.#mesh = new Mesh(mesh);
  }

  /**
   * @param step - steps done, this one included
   * @param ranks - in rank order
   * @throws {TroupeError} `RANKS_DIFFER` naming two ranks and their losses
   */
  review(step: number, ranks: readonly RankStepped[]): void {
    for (const [rank, { witnessNats = [] }] of ranks.entries()) {
      if (witnessNats.length === 0) continue;
      const teller = this.#mesh.groupOf("tp", rank)[0] as number;
      const told = ranks[teller]?.lossesNats ?? [];
      const at = witnessNats.findIndex((nats, index) => !Object.is(nats, told[index]));
      if (at >= 0) throw lossesDiffer(step, [teller, rank], [told[at], witnessNats[at]]);
    }
  }
}

function lossesDiffer(
  step: number,
  [teller, rank]: readonly [number, number],
  [told, found]: readonly (number | undefined)[],
): TroupeError {
  return new TroupeError("RANKS_DIFFER", {
    where: "loop",
    expected: `ranks ${teller} and ${rank}, which split the layers of one replica, to compute one loss in step ${step}`,
    got: `${told} and ${found}`,
    hint: "were their inputs drawn or chosen by rank.index? Take rank.axes.dp.index, which they share",
    fields: { step, ranks: [teller, rank] },
  });
}
