import { BusyTime, type FlatBlock, type ShardStore } from "../../compute/parallel/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { heldBy, ShardHistograms, ShardInspection } from "../inspect/index.ts";
import type * as protocol from "../protocols/index.ts";
import type { ParameterPaging } from "../state/paging/index.ts";
import type { JudgedGradient } from "./reduce/gradient-statistics.ts";

/** One shard's record of one step until all its updates are done. */
export class ShardStep {
  learningRates: readonly number[];
  readonly inspectUpdates: readonly string[];
  /** Sums of squares of the reduced gradients, by counted block. */
  readonly sums = new Map<number, Tensor>();
  /** Losses of the rank's micro-batches, a tensor if they are on a device; undefined until the rank has sent them. */
  lossesNats: readonly number[] | Tensor | undefined;
  /** The blocks that the step reduces and updates; undefined until the rank's forwards are made. */
  updated: readonly FlatBlock[] | undefined;
  numReduced = 0;
  judged: JudgedGradient | undefined;
  readonly reducing = new BusyTime();
  /** One promise for each ordered block update, settled once the block is complete. */
  readonly updates: Promise<void>[] = [];
  #updateMs = 0;
  readonly #inspectedUpdates: protocol.InspectedUpdate[] = [];
  readonly #ledger: boolean;
  readonly #inspection: ShardInspection;
  readonly #buckets: ShardHistograms | undefined;
  #inspected: readonly protocol.InspectedPart[] = [];
  #histograms: readonly protocol.HistogramPart[] = [];

  constructor(rank: number, store: ShardStore, begun: protocol.StepBegun) {
    this.learningRates = begun.learningRates;
    this.inspectUpdates = begun.inspectUpdates;
    this.#ledger = begun.ledger;
    this.#inspection = new ShardInspection(rank, begun.inspect, store);
    this.#buckets = begun.histograms ? new ShardHistograms(rank, store) : undefined;
  }

  /** Called while a block's reduced gradient is there. */
  lookAtGradient(layout: FlatBlock): void {
    this.#inspection.lookAtGradient(layout);
    this.#buckets?.lookAtGradient(layout);
  }

  /** Called after the updates of the step: only this shard writes its owned range. @param divisor - of the gradients' sum */
  async lookAtParameters(
    layouts: readonly FlatBlock[],
    divisor: number,
    paging: ParameterPaging,
  ): Promise<void> {
    this.#inspected = await this.#inspection.parts(layouts, divisor, paging);
    this.#histograms = (await this.#buckets?.parts(layouts, divisor, paging)) ?? [];
  }

  hasUpdated({ updateMs, inspected }: protocol.BlockUpdated): void {
    this.#updateMs += updateMs;
    this.#inspectedUpdates.push(...inspected);
  }

  ended(run: string, rank: number, lossScale: number | undefined): protocol.StepUpdated {
    return {
      gradientNorm: this.judged?.norm ?? Number.NaN,
      skipped: this.judged?.skipped ?? false,
      finding: this.judged?.finding,
      lossScale,
      reduceMs: this.reducing.totalMs,
      updateMs: this.#updateMs,
      inspected: this.#inspected,
      inspectedUpdates: this.#inspectedUpdates,
      histograms: this.#histograms,
      held: this.#ledger ? heldBy(run, rank) : undefined,
    };
  }
}

/** The steps that one shard has under way. */
export class ShardSteps {
  readonly #rank: number;
  readonly #underWay = new Map<number, ShardStep>();
  #latest = 0;

  constructor(rank: number) {
    this.#rank = rank;
  }

  get latest(): number {
    return this.#latest;
  }

  begin(step: number, begun: protocol.StepBegun, store: ShardStore): void {
    this.#latest = step;
    this.#underWay.set(step, new ShardStep(this.#rank, store, begun));
  }

  /** @throws where it has not begun, or is forgotten */
  at(step: number): ShardStep {
    const found = this.#underWay.get(step);
    if (found === undefined) throw new Error(`[shard ${this.#rank}] step ${step} has not begun`);
    return found;
  }

  forget(step: number): void {
    this.#underWay.delete(step);
  }
}
