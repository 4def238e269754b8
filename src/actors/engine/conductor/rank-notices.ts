import type { TroupeEventBody } from "../../../job/events/index.ts";
import type { RankStepped } from "../../protocols/index.ts";

/** Advice for a job whose labels do not count alike. */
const WEIGH =
  "add to the job weigh: ({ labels }) => labels.ne(-100).sum().item(), with the name of your labels";

/** Reports findings of the ranks about a job, each once in a run: labels that do not count alike, and which blocks are replayed. */
export class RankNotices {
  readonly #emitted = new Set<string>();

  /** @param ranks - after step `step` */
  review(step: number, ranks: readonly RankStepped[], emit: (event: TroupeEventBody) => void): void {
    const tell = (key: string, event: TroupeEventBody) => {
      const { size } = this.#emitted;
      if (this.#emitted.add(key).size > size) emit(event);
    };
    const numCounted = ranks.flatMap((rank) => rank.numCounted ?? []);
    if (new Set(numCounted).size > 1)
      tell("unweighed", { kind: "losses.unweighed", step, numCounted, advice: WEIGH });
    for (const program of ranks.flatMap((rank) => rank.programs ?? [])) {
      const { block, ...text } = program;
      tell(`recorded ${JSON.stringify(text)}`, { kind: "block.recorded", step, ...program });
    }
    for (const { block, reason, line } of ranks.flatMap((rank) => rank.unrecorded ?? [])) {
      const where = line === undefined ? {} : { line };
      tell(`unrecorded ${reason}`, { kind: "block.unrecorded", step, block, reason, ...where });
    }
  }
}
