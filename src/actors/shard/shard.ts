import { setImmediate as nextTurn } from "node:timers/promises";
import type { Access } from "../../compute/offload/index.ts";
import type { DeviceScales } from "../../compute/optim/index.ts";
import * as parallel from "../../compute/parallel/index.ts";
import { attach, hold, shareRef, Tensor, type TensorRef } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type ActorContext, type ActorRef, systemClock } from "../../runtime/index.ts";
import { reportActivity } from "../inspect/index.ts";
import * as protocol from "../protocols/index.ts";
import { type ShardPaging, whilePinned } from "../state/paging/index.ts";
import { FrozenFlags } from "./frozen-flags.ts";
import type { ShardGroups } from "./group/shard-groups.ts";
import { placeBlocks } from "./place-blocks.ts";
import {
  type ClipFactors,
  GlobalGradientStatistics,
  type JudgedGradient,
} from "./reduce/gradient-statistics.ts";
import { type ShardStep, ShardSteps } from "./shard-step.ts";
import { type OptimizerStateStore, stateStoreOf, Turns } from "./store/index.ts";
import { maySkipUpdates, OptimizerClock } from "./update/optimizer-clock.ts";

/** A shard's position and the parts that it works with. */
export interface ShardPlace {
  readonly context: ActorContext<protocol.ShardProtocol>;
  readonly rank: number;
  /** Where it may offload optimizer state. */
  readonly offload: ActorRef<protocol.OffloadProtocol> | undefined;
  readonly groups: ShardGroups;
  readonly paging: ShardPaging;
}

const NOT_CLIPPED: ClipFactors = { all: 1 };

/** Blocks are updated in one turn up to this many elements: fewer take less time than a turn and its messages. */
const ELEMENTS_A_TURN = 2 ** 18;

/**
 * One rank's share of the model through its steps. Gradients come in block by block while backward goes on and are reduced over
 * the replicas; the ranks exchange statistics and judge the step by them; the owned range of each block is updated; once every
 * rank has written its own, the block is complete, and the next step's gathers of it are answered. If no statistics of the
 * complete gradient are needed, a block is updated as soon as it is reduced.
 */
export class Shard {
  readonly #plan: protocol.ShardPlan;
  readonly #place: ShardPlace;
  /** Parameters and gradients. */
  readonly #store: parallel.ShardStore;
  readonly #stateStore: OptimizerStateStore;
  readonly #statistics: GlobalGradientStatistics;
  readonly #clock: OptimizerClock;
  readonly #steps: ShardSteps;
  /** By block, the step whose parameters every rank has written. */
  readonly #complete: readonly parallel.StepCounter[];
  readonly flags = new FrozenFlags();
  /** The number of steps whose updates are all made here and whose norm is known. */
  readonly #ended = new parallel.StepCounter();
  /** Delays the end of reductions, in experiments that ask for it. */
  readonly #delayed: Turns | undefined;
  /** Indices of the blocks that were declared frozen and for which the optimizers now keep state. */
  readonly #kept: Set<number>;
  readonly #updateAccess: Access;

  private constructor(
    plan: protocol.ShardPlan,
    place: ShardPlace,
    steps: ShardSteps,
    store: parallel.ShardStore,
    stateStore: OptimizerStateStore,
  ) {
    const { reduceMs } = plan.execution.slowdown;
    this.#plan = plan;
    this.#place = place;
    this.#store = store;
    this.#stateStore = stateStore;
    this.#steps = steps;
    this.#statistics = new GlobalGradientStatistics(plan, place.rank, store, place.groups);
    this.#clock = new OptimizerClock(plan);
    this.#complete = plan.layouts.map(() => new parallel.StepCounter());
    this.#delayed = reduceMs > 0 ? new Turns(reduceMs) : undefined;
    const progress = protocol.progressIn(plan.initial);
    const kept = plan.layouts.filter((layout) => parallel.keepsState(layout, progress));
    this.#kept = new Set(kept.map(({ index }) => index));
    this.#updateAccess = updateAccessOf(plan);
  }

  /** Makes the memory of every block and of the state, together with the block's other ranks; all still to be filled. */
  static async place(plan: protocol.ShardPlan, place: ShardPlace): Promise<Shard> {
    const { context, rank, offload, groups, paging } = place;
    const steps = new ShardSteps(rank);
    const { store, owned } = await placeBlocks(plan, {
      rank,
      groups,
      paging,
      onTransfer: (block, direction, beginMs) =>
        reportActivity(context, direction, { step: steps.latest, block }, beginMs),
    });
    const share = (update: protocol.BlockUpdate, round: number, value: Tensor) =>
      shareUpdate(plan, rank, groups, update, round, value);
    const stateStore = stateStoreOf(plan, owned, { rank, shard: context.self, offload, share, paging });
    return new Shard(plan, place, steps, store, stateStore);
  }

  /** Fills the memory with the run's initial state. @returns the rank's buffers, once all ranks have filled them */
  async fill(): Promise<TensorRef[]> {
    const { initial, layouts, reader } = this.#plan;
    await this.#stateStore.fill(initial, this.#place.context.self);
    this.#ended.reach(initial.step);
    await Promise.all(layouts.map(({ index }) => this.#announce(index, initial.step)));
    return layouts.map(({ index }) => shareRef(this.#store.full(index), { owner: reader }));
  }

  /** Makes a step of a state that is given: no rank has begun it, or reads parameters. @returns once all ranks have made it */
  async take(step: number, initial: protocol.InitialState): Promise<void> {
    await this.#stateStore.fill(initial, this.#place.context.self);
    this.#clock.scored(step);
    this.#clock.advance(step, false);
    this.#clock.forget(step);
    this.#ended.reach(step + 1);
    await Promise.all(this.#plan.layouts.map(({ index }) => this.#announce(index, step + 1)));
  }

  /** Begins a step with its learning rates and inspections. */
  begin(step: number, begun: protocol.StepBegun): void {
    this.#steps.begin(step, begun, this.#store);
    this.flags.begin(step, begun.frozen);
  }

  /**
   * Fulfilled once all ranks that exchange activations have begun a step with the same parameters frozen: else one would not join
   * the exchange of those gradients. @param shards - in rank order @throws {TroupeError} `PARAMETER_TRAINABLE`
   */
  async agree(step: number, shards: readonly ActorRef<protocol.ShardProtocol>[]): Promise<void> {
    const { deadlineMs } = this.#plan.execution;
    const reports = this.#plan.peers.together.map(async (rank) => {
      if (rank === this.#place.rank) return [rank, await this.flags.at(step)] as const;
      const peer = shards[rank] as ActorRef<protocol.ShardProtocol>;
      return [rank, (await peer.ask("frozen", { step }, { deadlineMs })).frozen] as const;
    });
    parallel.checkTrainedAlike(step, new Map(await Promise.all(reports)));
  }

  /** Answers once the block's parameters of `step` are complete and in memory. */
  async gather(step: number, block: number): Promise<protocol.Gathered> {
    await this.#completed(block).until(step);
    // A host that runs a complete step ahead of its device keeps the last step's gradients beside the next one's activations:
    // the last layer waits until the device has made the step's updates. The layers before it are its work meanwhile.
    const isLastLayer = block > 0 && block === this.#plan.layouts.length - 1;
    if (this.#statistics.isLate && isLastLayer) await this.#ended.until(step);
    const layout = this.#layoutOf(block);
    if (this.#place.paging.isPaged(layout)) await this.#place.paging.pin(layout, "read");
    return { gatheredAtMs: systemClock.now(), progress: this.#clock.before(step) };
  }

  /** The rank no longer needs the gathered block. */
  release(block: number): void {
    this.#place.paging.unpin(this.#layoutOf(block), "read");
  }

  /** @param gradient - the rank's flat gradient of a complete block, or its writes to a block of buffers; ownership passes */
  reduce(step: number, block: number, gradient: Tensor): Promise<void> {
    return unlessAborted(this.#reduce(step, block, gradient));
  }

  async #reduce(step: number, block: number, gradient: Tensor): Promise<void> {
    const progress = this.#steps.at(step);
    const layout = this.#layoutOf(block);
    this.#place.context.board.set("reduce", layout.name, step);
    const beginMs = systemClock.now();
    const group = this.#place.groups.of(layout.group);
    await this.#store.reduce(block, `reduce/${step}/${layout.name}`, gradient, group);
    await this.#delayed?.next();
    if (!layout.written) {
      const sums = this.#statistics.squareSums(layout);
      if (sums !== undefined) progress.sums.set(block, sums);
      progress.lookAtGradient(layout);
    }
    progress.reducing.add(beginMs, systemClock.now());
    if (this.#plan.telemetry.trace) reportActivity(this.#place.context, "reduce", { step, block }, beginMs);
    progress.numReduced += 1;
    if (!this.#statistics.isAwaited) this.#order(step, block, NOT_CLIPPED, progress);
    if (progress.numReduced === progress.updated?.length) await this.#end(step, progress);
  }

  /** The rank's forwards of a step are made: takes its losses, if it sends them, and the names that the step trains. */
  scored(step: number, scored: protocol.StepScored): Promise<void> {
    return unlessAborted(this.#scored(step, scored));
  }

  async #scored(step: number, { lossesNats, frozen, ...called }: protocol.StepScored): Promise<void> {
    const progress = this.#steps.at(step);
    progress.learningRates = called.learningRates ?? progress.learningRates;
    if (called.numMicroBatches !== undefined) this.#clock.count(step, called.numMicroBatches);
    if (frozen !== undefined) this.#clock.freeze(step, frozen);
    this.#clock.scored(step);
    progress.lossesNats = "kind" in lossesNats ? hold(() => attach(lossesNats)) : lossesNats;
    progress.updated = this.#plan.layouts.filter((layout) =>
      parallel.isUpdated(layout, this.#clock.frozenAt(step)),
    );
    if (!maySkipUpdates(this.#plan)) this.#passOver(step, progress.updated);
    // A stage with everything frozen has nothing to reduce, and still takes part in the global exchange.
    if (progress.updated.length === 0) await this.#end(step, progress);
  }

  /** An offload actor's share of an exchange by all ranks for an update. @returns all shares, in rank order; the caller's */
  share(update: protocol.BlockUpdate, round: number, value: Tensor): Promise<readonly Tensor[]> {
    return shareUpdate(this.#plan, this.#place.rank, this.#place.groups, update, round, value);
  }

  /** Answers once every block has been updated for `step`. */
  async finish(step: number): Promise<protocol.StepUpdated | undefined> {
    await this.#ended.until(step + 1);
    if (!this.#ended.has(step + 1)) return undefined;
    const progress = this.#steps.at(step);
    const lossScale = this.#clock.before(step).lossScale?.scale;
    this.#steps.forget(step);
    this.#clock.forget(step);
    this.flags.forget(step);
    return progress.ended(this.#plan.peers.groups.run, this.#place.rank, lossScale);
  }

  /** The rank's loop has returned after `step` steps. */
  left(step: number): void {
    this.#ended.endAt(step);
  }

  /** Has the state that follows `step` copied to the checkpointer, each block before its next update. */
  async snapshot(step: number, checkpointer: ActorRef<protocol.SnapshotProtocol>): Promise<void> {
    const { layouts, generation } = this.#plan;
    const blocks = layouts
      .filter((layout) => parallel.savesPart(layout, this.#place.rank))
      .map(({ index }) => index);
    this.#stateStore.snapshot({ step, generation, rank: this.#place.rank, checkpointer, blocks });
    // One rank reports for all.
    if (this.#place.rank === 0) this.#clock.reportAfter(step, checkpointer);
    if (this.#ended.has(step + 1)) await unlessAborted(this.#stateStore.settle(step));
  }

  /** Rejects all waits here, present and future, with `reason`. */
  abort(reason: Error): void {
    for (const complete of this.#complete) complete.abort(reason);
    this.#ended.abort(reason);
    this.flags.abort(reason);
  }

  dispose(): void {
    this.#stateStore.stop();
    this.#store.dispose();
  }

  /** All gradients are reduced here: exchanges statistics, makes the updates that waited for them, and ends the step. */
  async #end(step: number, progress: ShardStep): Promise<void> {
    const { sums, lossesNats = [] } = progress;
    const divisor = this.#clock.divisor(step);
    const { isLate } = this.#statistics;
    const { scales, judge } = await this.#statistics.exchange(step, sums, divisor, lossesNats);
    if (lossesNats instanceof Tensor) lossesNats.dispose();
    if (!isLate) this.#hasJudged(step, progress, await judge());
    if (this.#statistics.isAwaited) {
      const factors = scales ?? progress.judged?.factors ?? NOT_CLIPPED;
      let numUpdated = 0;
      for (const block of this.#updateOrder(progress.updated ?? [])) {
        this.#order(step, block, factors, progress);
        numUpdated += this.#layoutOf(block).numel;
        if (numUpdated < ELEMENTS_A_TURN) continue;
        // Then the next forward's gathers are answered while later blocks are still updated.
        numUpdated = 0;
        await nextTurn();
      }
    }
    await Promise.all(progress.updates);
    for (const scale of scales === undefined ? [] : [scales.all, ...scales.own]) scale?.dispose();
    await progress.lookAtParameters(this.#plan.layouts, divisor, this.#place.paging);
    if (isLate) this.#hasJudged(step, progress, await judge());
    this.#ended.reach(step + 1);
    await this.#stateStore.settle(step);
  }

  #hasJudged(step: number, progress: ShardStep, judged: JudgedGradient): void {
    progress.judged = judged;
    this.#clock.advance(step, judged.updateSkipped);
    // Only now: gathers carry the optimizer's progress, which the judgement decides.
    if (maySkipUpdates(this.#plan)) this.#passOver(step, progress.updated ?? []);
    if (judged.updateSkipped) this.#store.dropGradients();
  }

  /** The order of updates that begin together: blocks of the offload actor first, then this shard's in forward order. */
  #updateOrder(updated: readonly parallel.FlatBlock[]): number[] {
    const { layouts, offload } = this.#plan;
    const offloaded =
      offload.optimizer === undefined ? [] : parallel.offloadedBlocks(layouts, offload.optimizer.ratio);
    const blocks = updated.map(({ index }) => index);
    return [
      ...offloaded.filter((block) => blocks.includes(block)),
      ...blocks.filter((block) => !offloaded.includes(block)),
    ];
  }

  /** Blocks that a step does not change are complete for the next one as they are. */
  #passOver(step: number, updated: readonly parallel.FlatBlock[]): void {
    if (updated.length === this.#plan.layouts.length) return;
    for (const layout of this.#plan.layouts) {
      if (updated.includes(layout)) continue;
      const { index } = layout;
      // The rank may not have read it in this step: the last step's update may still be under way.
      const complete = this.#completed(index);
      complete.until(step).then(
        () => complete.reach(step + 1),
        () => {}, // aborted: so are all waits for it
      );
    }
  }

  #order(step: number, block: number, factors: ClipFactors | DeviceScales, progress: ShardStep): void {
    const updated = this.#updateAndAnnounce(step, block, factors, progress);
    // Errors are thrown where the step's end awaits all updates.
    updated.catch(() => {});
    progress.updates.push(updated);
  }

  /** @returns settled once every rank has updated the block */
  async #updateAndAnnounce(
    step: number,
    block: number,
    factors: ClipFactors | DeviceScales,
    progress: ShardStep,
  ): Promise<void> {
    if (progress.judged?.updateSkipped) {
      if (!this.#kept.has(block))
        await whilePinned(this.#place.paging, this.#layoutOf(block), "read", () =>
          this.#keepState(step, block),
        );
    } else await this.#update(step, block, factors, progress);
    await this.#announce(block, step + 1);
  }

  /** @returns fulfilled once the step's gradient, which is used up, has updated this shard's range of the block */
  async #update(
    step: number,
    block: number,
    factors: ClipFactors | DeviceScales,
    progress: ShardStep,
  ): Promise<void> {
    const { training, telemetry } = this.#plan;
    const layout = this.#layoutOf(block);
    const divisor = this.#clock.divisor(step);
    if (training.clip?.by === "value" && !layout.written)
      this.#store.clampGradient(block, training.clip.max * divisor);
    const names = layout.parameters.map(({ name }) => name);
    const frozen = this.#clock.frozenAt(step);
    const update = {
      step,
      block,
      updateIndex: this.#clock.before(step).numUpdates + 1,
      learningRates: progress.learningRates,
      inspect: progress.inspectUpdates,
      frozen: names.filter((name) => frozen.has(name)),
      frozenUpdates: this.#clock.frozenUpdatesBefore(step, names),
      ...(areOnDevice(factors) ? { gradientScale: 1 } : scalesOf(factors, divisor)),
    };
    const scales = areOnDevice(factors) ? factors : undefined;
    // An update leaves what is frozen as it is: that must be in memory.
    const access = update.frozen.length > 0 ? "change" : this.#updateAccess;
    await whilePinned(this.#place.paging, layout, access, async () => {
      if (!this.#kept.has(block)) await this.#keepState(step, block);
      const beginMs = systemClock.now();
      progress.hasUpdated(await this.#stateStore.update(update, this.#store.takeGradient(block), scales));
      if (telemetry.trace) reportActivity(this.#place.context, "update", update, beginMs);
    });
  }

  async #keepState(step: number, block: number): Promise<void> {
    this.#kept.add(block);
    await this.#stateStore.keepState(step, block);
  }

  /** Announces that this rank has written its range of the block for `step`. @returns once all have */
  async #announce(block: number, step: number): Promise<void> {
    const layout = this.#layoutOf(block);
    const { name, zero, group } = layout;
    // At level 0 a rank has its own replica and reads nothing of its peers.
    if (zero !== 0)
      await this.#place.groups.of(group).gather(`gathered/${step}/${name}`, this.#store.gathered(block));
    this.#completed(block).reach(step);
  }

  #completed(block: number): parallel.StepCounter {
    return this.#complete[block] as parallel.StepCounter;
  }

  #layoutOf(block: number): parallel.FlatBlock {
    return this.#plan.layouts[block] as parallel.FlatBlock;
  }
}

/** Exchanges what an update asks of all ranks that hold some of the block's parameters. @returns their values, in rank order */
async function shareUpdate(
  { layouts }: protocol.ShardPlan,
  rank: number,
  groups: ShardGroups,
  { step, block }: protocol.BlockUpdate,
  round: number,
  value: Tensor,
): Promise<readonly Tensor[]> {
  const layout = layouts[block] as parallel.FlatBlock;
  const ranks = parallel.holdersOf(layout, rank);
  if (ranks.length === 1) return [value];
  return groups.of(ranks).allGather(`update/${step}/${layout.name}/${round}`, value);
}

const ABORTED: readonly string[] = ["COLLECTIVE_ABORTED", "ACTOR_DOWN"];

/** Ends work that a dead peer has made pointless in silence: the peer's own failure is reported. */
async function unlessAborted(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const isAborted = error instanceof TroupeError && ABORTED.includes(error.code);
    if (!isAborted) throw error;
  }
}

/** The factors of a step's gradient, if the host knows the clip factors. @param divisor - of its sum */
function scalesOf({ all, own }: ClipFactors, divisor: number) {
  const gradientScale = all / divisor;
  return own === undefined
    ? { gradientScale }
    : { gradientScale, ownScales: own.map((factor) => factor && factor / divisor) };
}

function areOnDevice(factors: ClipFactors | DeviceScales): factors is DeviceScales {
  return factors.all instanceof Tensor;
}

/** With separate masters rounded to nearest, an update needs nothing of the parameters that the ranks read. */
function updateAccessOf({ precision, optimizers }: protocol.ShardPlan): Access {
  const isStochastic = optimizers.some(({ rounding }) => rounding !== undefined);
  return precision.weights === "float32" || isStochastic ? "change" : "overwrite";
}
