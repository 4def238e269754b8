import type { FlatBlock } from "../../../compute/parallel/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { DeclaredModel } from "../../protocols/index.ts";

/**
 * Checks that ranks which share a block have laid it out alike: else they would wait for each other for ever.
 * @throws {TroupeError} `RANKS_DIFFER` with the block and the ranks
 */
export function checkAlike(models: readonly DeclaredModel[]): void {
  for (const [rank, { layouts }] of models.entries()) {
    for (const layout of layouts) {
      for (const peer of layout.group) {
        const theirs = models[peer]?.layouts.find(({ name }) => name === layout.name);
        if (theirs === undefined || describe(theirs) !== describe(layout))
          throw ranksDiffer(layout, rank, peer);
      }
    }
  }
}

function describe({ group, zero, parameters }: FlatBlock): string {
  return `${group} at level ${zero}: ${parameters.map(({ name, shape }) => `${name} [${shape}]`).join(", ")}`;
}

function ranksDiffer({ name }: FlatBlock, rank: number, peer: number): TroupeError {
  return new TroupeError("RANKS_DIFFER", {
    where: "conductor",
    expected: "every rank to declare the same model",
    got: `a block ${name} on rank ${rank} that is not so on rank ${peer}`,
    hint: "let the job's model depend on its settings alone",
    fields: { block: name, rank, peer },
  });
}
