import { checkTrainedAlike, type FlatBlock, Mesh, type MeshShape } from "../../../compute/parallel/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { DeclaredModel, RankStepped } from "../../protocols/index.ts";

/** Checks that ranks have laid out the blocks that they share alike, or they would wait for ever. @throws `RANKS_DIFFER` */
export function checkAlike(models: readonly DeclaredModel[]): void {
  for (const [rank, { layouts }] of models.entries()) {
    for (const layout of layouts) {
      const differs = (peer: number) => {
        const theirs = models[peer]?.layouts.find(({ name }) => name === layout.name);
        return theirs === undefined || describe(theirs) !== describe(layout);
      };
      const peer = layout.group.find(differs);
      if (peer === undefined) continue;
      const { name } = layout;
      throw new TroupeError("RANKS_DIFFER", {
        where: "conductor",
        expected: "every rank to declare the same model",
        got: `a block ${name} on rank ${rank} that is not so on rank ${peer}`,
        hint: "let the job's model depend on its settings alone",
        fields: { block: name, rank, peer },
      });
    }
  }
}

function describe({ group, zero, parameters }: FlatBlock): string {
  return `${group} at level ${zero}: ${parameters.map(({ name, shape }) => `${name} [${shape}]`).join(", ")}`;
}

/** Checks each step of a rank group for ranks that have trained differently. */
export class AlikeSteps {
  readonly #mesh: Mesh;
  /** The frozen parameters of each rank, as last reported. */
  #frozen: readonly (readonly string[])[] = [];

  constructor(mesh: Partial<MeshShape>) {
    this.#mesh = new Mesh(mesh);
  }

  /**
   * Ranks with other frozen parameters would wait for each other for ever; ranks that split layers compute one loss of one input.
   * @param step - steps done, this one included; each in its turn
   * @throws {TroupeError} `PARAMETER_TRAINABLE` with the first parameter and the ranks; `RANKS_DIFFER` with two ranks' losses
   */
  review(step: number, ranks: readonly RankStepped[]): void {
    if (ranks.some(({ frozen }) => frozen !== undefined)) {
      this.#frozen = ranks.map(({ frozen }, rank) => frozen ?? this.#frozen[rank] ?? []);
      checkTrainedAlike(step - 1, new Map(this.#frozen.entries()));
    }
    for (const [rank, { witnessNats = [] }] of ranks.entries()) {
      if (witnessNats.length === 0) continue;
      const teller = this.#mesh.groupOf("tp", rank)[0] as number;
      const tellerNats = ranks[teller]?.lossesNats ?? [];
      const at = witnessNats.findIndex((nats, index) => !Object.is(nats, tellerNats[index]));
      if (at < 0) continue;
      throw new TroupeError("RANKS_DIFFER", {
        where: "loop",
        expected: `ranks ${teller} and ${rank}, which split the layers of one replica, to compute one loss in step ${step}`,
        got: `${tellerNats[at]} and ${witnessNats[at]}`,
        hint: "were their inputs drawn or chosen by rank.index? Take rank.axes.dp.index, which they share",
        fields: { step, ranks: [teller, rank] },
      });
    }
  }
}
