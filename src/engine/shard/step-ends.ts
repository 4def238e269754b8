import { setImmediate as nextTurn } from "node:timers/promises";
import { type FlatBlock, StepBarrier } from "../../parallel/index.ts";
import type { ParameterPaging } from "../../state/paging/index.ts";
import type { ClipFactors } from "./gradient-agreement.ts";
import type { LocalGroups } from "./local-groups.ts";
import type { PreparedShard } from "./prepared-shard.ts";
import type { ShardStep } from "./shard-step.ts";

const ALL_BLOCKS = -1;

/** What a shard's steps end with: from reduced gradients to parameters that are whole on every rank. */
export class StepEnds {
  readonly #groups: LocalGroups;
  readonly #ready: () => PreparedShard;
  readonly #paging: () => ParameterPaging;
  /** By block, the step whose parameters every rank has written. */
  readonly #whole = new StepBarrier();
  /** Of {@link ALL_BLOCKS}, the number of steps whose updates are all made here and whose norm is known. */
  readonly #updated = new StepBarrier();

  /** @param ready - what the shard works with; not asked for before it is prepared */
  constructor(groups: LocalGroups, ready: () => PreparedShard, paging: () => ParameterPaging) {
    this.#groups = groups;
    this.#ready = ready;
    this.#paging = paging;
  }

  /** Parameters and state are those that `step` updates have made, on this shard: waits until they are on all. */
  async begin(step: number): Promise<void> {
    this.#updated.reach(ALL_BLOCKS, step);
    await Promise.all(this.#ready().plan.layouts.map((layout) => this.#announceWhole(layout.index, step)));
  }

  /** Resolves once the block's parameters of `step` are whole. */
  whole(block: number, step: number): Promise<void> {
    return this.#whole.until(block, step);
  }

  /** Resolves once so many steps have ended here. */
  ended(numSteps: number): Promise<void> {
    return this.#updated.until(ALL_BLOCKS, numSteps);
  }

  /** Whether so many steps have ended here. */
  hasEnded(numSteps: number): boolean {
    return this.#updated.has(ALL_BLOCKS, numSteps);
  }

  /** A block's gradient is reduced: updates it, unless that waits for what all agree on. */
  reduced(step: number, block: number, progress: ShardStep): void {
    if (!this.#ready().agreement.isAwaited) this.#order(step, block, { all: 1 }, progress);
  }

  /** Gradient whole on every rank: the norm, the updates that waited for it, and what waits for the step's end. */
  async end(step: number, progress: ShardStep): Promise<void> {
    const { plan, store, stateStore, agreement, clock, updates } = this.#ready();
    const { sums, lossesNats = [] } = progress;
    const agreed = await agreement.agree(step, sums, clock.divisor(step), lossesNats);
    progress.agreed = agreed;
    clock.advance(step, agreed.withheld);
    if (agreed.withheld) store.dropGradients();
    if (agreement.isAwaited) {
      for (const block of updates.order) {
        this.#order(step, block, agreed.factors, progress);
        // One block a turn, so that the next forward's gathers are answered while later blocks are still updated.
        await nextTurn();
      }
    }
    await Promise.all(progress.updates);
    await progress.lookAtParameters(plan.layouts, clock.divisor(step), this.#paging());
    this.#updated.reach(ALL_BLOCKS, step + 1);
    await stateStore.settle(step);
  }

  /** Whoever waits, now or later, gets `reason`. */
  abort(reason: Error): void {
    this.#whole.abort(reason);
    this.#updated.abort(reason);
  }

  #order(step: number, block: number, factors: ClipFactors, progress: ShardStep): void {
    const whole = this.#update(step, block, factors, progress);
    // Whatever goes wrong is thrown where the step's end waits for all of them.
    whole.catch(() => {});
    progress.updates.push(whole);
  }

  /** @returns settled once every rank has updated the block */
  async #update(step: number, block: number, factors: ClipFactors, progress: ShardStep): Promise<void> {
    if (!progress.agreed?.withheld) await this.#ready().updates.make(step, block, factors, progress);
    await this.#announceWhole(block, step + 1);
  }

  async #announceWhole(block: number, step: number): Promise<void> {
    const { plan, store } = this.#ready();
    const { name, zero, group, trainable } = plan.layouts[block] as FlatBlock;
    // At level 0 a rank has its own replica and reads nothing of its peers.
    if (zero !== 0) await this.#groups.of(group).gather(`whole/${step}/${name}`, store.gathered(block));
    // What is frozen is whole for good.
    this.#whole.reach(block, trainable ? step : Number.POSITIVE_INFINITY);
  }
}
