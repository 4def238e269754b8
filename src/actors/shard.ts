import { setImmediate as nextTurn } from "node:timers/promises";
import { TroupeError } from "../errors.ts";
import {
  advanceProgress,
  beginProgress,
  type ClipRule,
  clipFactor,
  type LossScaleRule,
  type OptimizerProgress,
  type OptimizerSpec,
  updateRuleOf,
} from "../optim/index.ts";
import {
  BlockState,
  BusyTime,
  type FlatBlock,
  firstNotFinite,
  Milestones,
  memberOf,
  offloadedBlocks,
  ShardStore,
  sumOfSquares,
} from "../parallel/index.ts";
import {
  type ActorContext,
  type ActorRef,
  type Addressed,
  type Down,
  defineActor,
  systemClock,
} from "../runtime/index.ts";
import {
  attach,
  chargeThreadTo,
  type DType,
  hold,
  ops,
  type Statistics,
  scaleStatistics,
  scope,
  setNumThreads,
  shareRef,
  type Tensor,
  type TensorRef,
  tensor,
} from "../tensor/index.ts";
import { tellActivity } from "./activity.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import { type HeldMemory, heldBy, ownerOf } from "./held-memory.ts";
import type { InitialState } from "./initial-state.ts";
import { type InspectedPart, inspectRange, ownedView } from "./inspected-part.ts";
import { type LocalGroupProtocol, sliceFor } from "./local-group.ts";
import { LocalGroups } from "./local-groups.ts";
import type { OffloadProtocol, StateHome } from "./offload.ts";
import { sentTo } from "./recipient.ts";
import { RemoteKeeper } from "./remote-keeper.ts";
import { sendsPart } from "./snapshot.ts";
import { type BlockUpdate, DividedKeeper, MemoryKeeper, type StateKeeper } from "./state-keeper.ts";
import { Turns } from "./turns.ts";

/** What a shard owns and whom it works with. */
export interface ShardPlan {
  readonly layouts: readonly FlatBlock[];
  /** Ranks that hold the same part of the model, in order, this one included. */
  readonly replicas: readonly number[];
  /** Ranks that together hold this replica of the model, in order. */
  readonly modelParallel: readonly number[];
  readonly dtype: DType;
  /** Over disjoint parameters; the first takes what none of them names. */
  readonly optimizers: readonly OptimizerSpec[];
  /** Without clipping and loss scale each block is updated as soon as it is reduced. */
  readonly clip: ClipRule | undefined;
  /** With one, a step whose gradient is not finite is skipped on all ranks; without one it is an error. */
  readonly lossScale: LossScaleRule | undefined;
  /** Gradients are sums over this many micro-batches of all ranks. */
  readonly numMicroBatches: number;
  readonly initial: InitialState;
  /** Life of the rank group, counted from 0. */
  readonly life: number;
  /** Threads of this shard's arithmetic. */
  readonly numThreads: number;
  /** Who reads the parameters, by the name of {@link recipientName}. */
  readonly reader: string;
  readonly offload: OptimizerOffload | undefined;
  readonly slowdown: Slowdown;
  /** Whether actors tell what they do to each block. */
  readonly trace: boolean;
  /** How long one answer of another actor may take. */
  readonly deadlineMs: number;
}

/** What optimizer state each shard leaves to an offload actor. Plain data. */
export interface OptimizerOffload {
  /** How much of it, from 0 to 1. */
  readonly ratio: number;
  readonly home: StateHome;
}

/** Delays on purpose, in milliseconds: what slower disks or links would cost. */
export interface Slowdown {
  /** Each offloaded update. */
  readonly updateMs: number;
  /** Each reduction of a block's gradient. */
  readonly reduceMs: number;
}

/** What a step's end looked like from the shard. */
export interface StepUpdated {
  /** L2 norm of the averaged gradient before clipping. */
  readonly gradientNorm: number;
  /** Whether the gradient was not finite, and nothing was updated. */
  readonly skipped: boolean;
  /** What the loss of this step was multiplied by; none where it is not scaled. */
  readonly lossScale: number | undefined;
  /** Time in which gradients were under way between the ranks or being summed, in milliseconds. */
  readonly reduceMs: number;
  /** Time this shard spent on optimizer steps, in milliseconds. */
  readonly updateMs: number;
  /** This shard's share of the parameters that were to be looked at. */
  readonly inspected: readonly InspectedPart[];
  /** What its rank holds, where that was asked. */
  readonly held: HeldMemory | undefined;
}

/** Answer to a gather. */
export interface Gathered {
  /** When the parameters were whole, in milliseconds of the process's clock. */
  readonly wholeAtMs: number;
  /** How far the optimizer has come before this step. */
  readonly progress: OptimizerProgress;
}

/** Steps count from 0; "the parameters of step s" have seen s updates. */
export type ShardProtocol = LocalGroupProtocol & {
  /** Every shard of the world, in rank order; and whose end aborts collectives. */
  join: {
    in: { peers: readonly ActorRef<ShardProtocol>[]; ranks: readonly Addressed[] };
    out: { joined: true };
  };
  /** Allocates and fills every block; answers with the buffers the rank reads parameters from. */
  prepare: { in: ShardPlan; out: { fulls: readonly TensorRef[] } };
  /** Learning rates of a step, and which parameters it is inspected for; sent before its first gradient. */
  begin: {
    in: { step: number; learningRates: readonly number[]; inspect: readonly string[]; ledger: boolean };
  };
  /** Answered once the block's parameters of `step` are whole. */
  gather: { in: { step: number; block: number }; out: Gathered };
  /** A rank's flat gradient of a whole block; ownership of the tensor passes. */
  reduce: { in: { step: number; block: number; gradient: TensorRef } };
  /** Answered when every block has been updated for `step`. */
  finish: { in: { step: number }; out: StepUpdated };
  /** An offload actor's share of what an update asks of all ranks; answered with all of them, in rank order. */
  share: {
    in: { update: BlockUpdate; round: number; value: TensorRef };
    out: { values: readonly TensorRef[] };
  };
  /** Copies the state that follows `step` to the checkpointer, each block before its next update. */
  snapshot: { in: { step: number; checkpointer: ActorRef<CheckpointerProtocol> } };
};

/** What a shard is born with. */
export interface ShardInit {
  readonly rank: number;
  /** Where this shard may leave state. */
  readonly offload: ActorRef<OffloadProtocol> | undefined;
}

export default defineActor<ShardProtocol, ShardInit>({
  lanes: { contribute: "control", own: "control" },
  concurrent: ["prepare", "gather", "reduce", "share", "finish"],
  async start(context, init) {
    const shard = new Shard(context, init);
    return {
      handlers: {
        join: ({ peers, ranks }) => shard.join(peers, ranks),
        prepare: (plan) => shard.prepare(plan),
        begin: (message) => shard.begin(message),
        gather: ({ step, block }) => shard.gather(step, block),
        reduce: ({ step, block, gradient }) => unlessAborted(shard.reduce(step, block, gradient)),
        own: (given) => shard.groups.at(given.group).owned(given),
        contribute: (value) => shard.groups.at(value.group).contributed(value),
        share: ({ update, round, value }) => shard.share(update, round, value),
        finish: ({ step }) => shard.finish(step),
        snapshot: ({ step, checkpointer }) => unlessAborted(shard.snapshot(step, checkpointer)),
      },
      stop: () => shard.stop(),
    };
  },
});

/** What is known of one step until all its updates are done. */
interface StepProgress {
  readonly learningRates: readonly number[];
  /** Patterns of parameters to look at. */
  readonly inspect: readonly string[];
  /** Whether to look at the memory that is held. */
  readonly ledger: boolean;
  /** Of the summed gradients of those, by name. */
  readonly gradients: Map<string, Statistics>;
  inspected: readonly InspectedPart[];
  /** Sums of squares of the reduced gradients, by block that counts in the norm. */
  readonly sums: Map<number, Tensor>;
  numReduced: number;
  gradientNorm: number;
  skipped: boolean;
  readonly reducing: BusyTime;
  /** Of the blocks whose updates have been ordered: settled once they are whole. */
  readonly updates: Promise<void>[];
  updateMs: number;
}

/** From 2³² down to 1 a scale halves 32 times; what still overflows after three times as many steps will go on to. */
const MAX_SKIPPED_IN_A_ROW = 100;

/** What clipping multiplies the gradient by: all of it, or what an optimizer clips by itself. */
interface ClipFactors {
  readonly all: number;
  readonly own?: readonly (number | undefined)[];
}

const ALL_BLOCKS = -1;

class Shard {
  readonly groups: LocalGroups;
  readonly #context: ActorContext<ShardProtocol>;
  readonly #rank: number;
  readonly #offload: ActorRef<OffloadProtocol> | undefined;
  /** By block, the step whose parameters every rank has written. */
  readonly #whole = new Milestones();
  /** Of {@link ALL_BLOCKS}, the number of steps whose updates are all made here and whose norm is known. */
  readonly #updated = new Milestones();
  readonly #steps = new Map<number, StepProgress>();
  /** By step, how far the optimizer has come before it. */
  readonly #optimizer = new Map<number, OptimizerProgress>();
  #store: ShardStore | undefined;
  #plan: ShardPlan | undefined;
  #keeper: StateKeeper | undefined;
  /** In which reductions end, where each is put off on purpose. */
  #delayed: Turns | undefined;
  #skippedInARow = 0;
  /** A checkpoint that does not know yet how far the optimizer has come. */
  #saving: { readonly step: number; readonly checkpointer: ActorRef<CheckpointerProtocol> } | undefined;

  constructor(context: ActorContext<ShardProtocol>, init: ShardInit) {
    this.#context = context;
    this.#rank = init.rank;
    this.#offload = init.offload;
    this.groups = new LocalGroups(init.rank);
  }

  join(peers: readonly ActorRef<ShardProtocol>[], ranks: readonly Addressed[]): { joined: true } {
    this.groups.join(peers);
    const others = peers.filter((_, rank) => rank !== this.#rank);
    const helpers = this.#offload === undefined ? [] : [this.#offload];
    for (const member of [...others, ...ranks, ...helpers])
      this.#context.watch(member, (down) => this.#abort(down));
    return { joined: true };
  }

  async prepare(plan: ShardPlan): Promise<{ fulls: TensorRef[] }> {
    this.#plan = plan;
    setNumThreads(plan.numThreads);
    chargeThreadTo(ownerOf(this.#rank), "working");
    if (plan.slowdown.reduceMs > 0) this.#delayed = new Turns(plan.slowdown.reduceMs);
    const store = new ShardStore(this.#rank, plan.dtype);
    this.#store = store;
    const owned: Tensor[] = [];
    for (const layout of plan.layouts) owned.push(await this.#place(layout, store));
    this.#keeper = this.#keeperOf(plan, owned);
    await this.#keeper.fill(plan.initial);
    const { step } = plan.initial;
    this.#optimizer.set(step, beginProgress(progressOf(plan.initial), plan.lossScale));
    await Promise.all(plan.layouts.map((layout) => this.#announceWhole(layout.index, step)));
    return {
      fulls: plan.layouts.map((layout) => shareRef(store.full(layout.index), { owner: plan.reader })),
    };
  }

  begin({ step, learningRates, inspect, ledger }: ShardProtocol["begin"]["in"]): void {
    this.#steps.set(step, {
      learningRates,
      inspect,
      ledger,
      gradients: new Map(),
      inspected: [],
      sums: new Map(),
      numReduced: 0,
      gradientNorm: Number.NaN,
      skipped: false,
      reducing: new BusyTime(),
      updates: [],
      updateMs: 0,
    });
  }

  async gather(step: number, block: number): Promise<Gathered> {
    await this.#whole.until(block, step);
    return { wholeAtMs: systemClock.now(), progress: this.#progressBefore(step) };
  }

  async reduce(step: number, block: number, gradient: TensorRef): Promise<void> {
    const { store, plan } = this.#prepared();
    const progress = this.#progressOf(step);
    const layout = plan.layouts[block] as FlatBlock;
    this.#context.board.set("reduce", layout.name, step);
    const beginMs = systemClock.now();
    const flats = await this.groups.of(layout.group).all(
      `reduce/${step}/${layout.name}`,
      hold(() => attach(gradient)),
    );
    await this.#delayed?.next();
    store.reduce(block, flats as Tensor[]);
    if (layout.counted)
      progress.sums.set(
        block,
        hold(() => store.squareSums(block, this.#clippedAlone)),
      );
    this.#inspectGradient(progress, layout);
    progress.reducing.add(beginMs, systemClock.now());
    if (plan.trace) tellActivity(this.#context, "reduce", { step, block }, beginMs);
    for (const flat of flats) flat?.dispose();
    progress.numReduced += 1;
    if (this.#updatesAtOnce) this.#order(step, block, { all: 1 });
    if (progress.numReduced === this.#trained.length) await this.#endStep(step, progress);
  }

  async share(update: BlockUpdate, round: number, value: TensorRef): Promise<{ values: TensorRef[] }> {
    const offload = this.#offload as ActorRef<OffloadProtocol>;
    const all = await this.#share(
      update,
      round,
      hold(() => attach(value)),
    );
    const values = all.map((tensor) => shareRef(tensor, sentTo(offload)));
    for (const tensor of all) tensor.dispose();
    return { values };
  }

  async finish(step: number): Promise<StepUpdated> {
    await this.#updated.until(ALL_BLOCKS, step + 1);
    const { gradientNorm, skipped, reducing, updateMs, inspected, ledger } = this.#progressOf(step);
    const lossScale = this.#progressBefore(step).lossScale?.scale;
    this.#steps.delete(step);
    this.#optimizer.delete(step);
    return {
      gradientNorm,
      skipped,
      lossScale,
      reduceMs: reducing.totalMs,
      updateMs,
      inspected,
      held: ledger ? heldBy(this.#rank) : undefined,
    };
  }

  async snapshot(step: number, checkpointer: ActorRef<CheckpointerProtocol>): Promise<void> {
    const { plan, keeper } = this.#prepared();
    const blocks = plan.layouts.filter((layout) => sendsPart(layout, this.#rank)).map(({ index }) => index);
    keeper.snapshot({ step, life: plan.life, checkpointer, blocks });
    this.#saving = { step, checkpointer };
    this.#tellProgress(step);
    if (this.#updated.has(ALL_BLOCKS, step + 1)) await keeper.settle(step);
  }

  stop(): void {
    this.#keeper?.stop();
    this.#store?.dispose();
  }

  /** Gradient whole on every rank: the norm, the updates that waited for it, in forward order, and what waits for the step's end. */
  async #endStep(step: number, progress: StepProgress): Promise<void> {
    const { plan, store, keeper } = this.#prepared();
    const factors = await this.#agree(step, progress);
    const before = this.#progressBefore(step);
    this.#optimizer.set(step + 1, advanceProgress(before, plan.lossScale, progress.skipped));
    this.#tellProgress(step);
    if (progress.skipped) store.dropGradients();
    if (!this.#updatesAtOnce) {
      for (const block of this.#updateOrder) {
        this.#order(step, block, factors);
        // One block a turn, so that the next forward's gathers are answered while later blocks are still updated.
        await nextTurn();
      }
    }
    await Promise.all(progress.updates);
    progress.inspected = this.#inspectParameters(step, progress);
    this.#updated.reach(ALL_BLOCKS, step + 1);
    await keeper.settle(step);
  }

  /**
   * Exchanges what all ranks must know of the gradient: its norm, and with it whether it is finite. All see the same
   * numbers, so all skip or none.
   * @returns the factors that clip it
   */
  async #agree(step: number, progress: StepProgress): Promise<ClipFactors> {
    const { plan } = this.#prepared();
    const divisor = this.#gradientDivisor(step);
    const { squares, largest, where } = await this.#measure(step, progress);
    const [norm = 0, ...ofParts] = squares.map((square) => Math.sqrt(square) / divisor);
    progress.gradientNorm = norm;
    progress.skipped = !Number.isFinite(progress.gradientNorm);
    this.#skippedInARow = progress.skipped ? this.#skippedInARow + 1 : 0;
    if (progress.skipped && (plan.lossScale === undefined || this.#skippedInARow > MAX_SKIPPED_IN_A_ROW))
      throw notFinite(step, norm, where, this.#skippedInARow);
    const own = plan.optimizers.map(({ clipNorm }) =>
      clipNorm === undefined ? undefined : clipFactor(ofParts.shift() ?? 0, clipNorm),
    );
    if (plan.clip === undefined || plan.clip.by === "value") return { all: 1, own };
    return { all: clipFactor(plan.clip.by === "inf" ? largest / divisor : norm, plan.clip.max), own };
  }

  /**
   * The summed gradient's squares, of all of it and of what each optimizer clips by itself, and its largest magnitude:
   * over the replicas' slices, then over the parts of the model.
   */
  async #measure(
    step: number,
    progress: StepProgress,
  ): Promise<{ readonly squares: number[]; readonly largest: number; readonly where: string | undefined }> {
    const { plan, store } = this.#prepared();
    const counted = this.#trained.filter((layout) => layout.counted);
    const sums = counted.map(({ index }) => progress.sums.get(index) as Tensor);
    const shares = hold(() => {
      const magnitudes =
        plan.clip?.by === "inf" ? counted.map(({ index }) => store.largestGradient(index)) : [];
      return ops.cat([...sums, tensor([Math.max(0, ...magnitudes)], { dtype: "float64" })]);
    });
    for (const each of sums) each.dispose();
    const bySlice = await this.#gathered(plan.replicas, `norm/${step}`, shares);
    const numKinds = 1 + this.#clippedAlone.length;
    const squares = Array.from({ length: numKinds }, (_, kind) =>
      sumOfSquares(counted, bySlice, kind, numKinds),
    );
    const ofPart = Math.max(...bySlice.map((share) => share.at(-1) ?? 0));
    const part = hold(() => tensor([...squares, ofPart], { dtype: "float64" }));
    const byPart = await this.#gathered(plan.modelParallel, `norm of parts/${step}`, part);
    return {
      squares: squares.map((_, kind) => byPart.reduce((sum, part) => sum + (part[kind] ?? 0), 0)),
      largest: Math.max(...byPart.map((part) => part[numKinds] ?? 0)),
      where: firstNotFinite(counted, bySlice, numKinds),
    };
  }

  #inspectGradient({ inspect, gradients }: StepProgress, layout: FlatBlock): void {
    if (inspect.length === 0) return;
    scope(() => {
      const gradient = this.#prepared().store.ownedGradient(layout.index);
      const found = inspectRange(layout, this.#rank, inspect, gradient);
      for (const [name, statistics] of found) gradients.set(name, statistics);
    });
  }

  /** After the updates of a step: nobody but this shard writes its owned range. */
  #inspectParameters(step: number, { inspect, gradients }: StepProgress): InspectedPart[] {
    if (inspect.length === 0) return [];
    const { plan, store } = this.#prepared();
    const divisor = this.#gradientDivisor(step);
    return plan.layouts.flatMap((layout) =>
      scope(() => {
        const values = ownedView(layout, this.#rank, store.full(layout.index));
        const found = inspectRange(layout, this.#rank, inspect, values);
        return layout.parameters.flatMap(({ name, shape, split }) => {
          const statistics = found.get(name);
          if (statistics === undefined) return [];
          const gradient = gradients.get(name);
          return [
            {
              name,
              shape: split?.logicalShape ?? shape,
              values: statistics,
              gradient: gradient && scaleStatistics(gradient, 1 / divisor),
            },
          ];
        });
      }),
    );
  }

  /** The float64 values of all ranks of a group, in order; takes `value`. */
  async #gathered(group: readonly number[], key: string, value: Tensor): Promise<Float64Array[]> {
    const all = (await this.groups.of(group).all(key, value)) as Tensor[];
    const values = all.map((each) => each.toTypedArray() as Float64Array);
    for (const each of all) each.dispose();
    return values;
  }

  /** The names of each optimizer's parameters, of those that clip by themselves. */
  get #clippedAlone(): ReadonlySet<string>[] {
    return this.#prepared().plan.optimizers.flatMap(({ clipNorm, groups }) =>
      clipNorm === undefined ? [] : new Set(groups.flatMap(({ names }) => names)),
    );
  }

  /** The flat blocks that are reduced and updated. */
  get #trained(): FlatBlock[] {
    return this.#prepared().plan.layouts.filter((layout) => layout.trainable);
  }

  /** What the gradients' sum is divided by to be the gradient of the mean loss. */
  #gradientDivisor(step: number): number {
    const lossScale = this.#progressBefore(step).lossScale?.scale ?? 1;
    return this.#prepared().plan.numMicroBatches * lossScale;
  }

  /** Nothing that an update does depends on other blocks' gradients. */
  get #updatesAtOnce(): boolean {
    const { clip, lossScale } = this.#prepared().plan;
    const waits = lossScale !== undefined || this.#clippedAlone.length > 0;
    return !waits && (clip === undefined || clip.by === "value");
  }

  /** Known once the step before it has ended; without loss scale nothing is ever skipped, and it is known always. */
  #progressBefore(step: number): OptimizerProgress {
    const { initial, lossScale } = this.#prepared().plan;
    const known = this.#optimizer.get(step);
    if (known !== undefined) return known;
    if (lossScale !== undefined) throw new Error(`[shard ${this.#rank}] step ${step} has no loss scale yet`);
    const before = beginProgress(progressOf(initial), undefined);
    return { numUpdates: before.numUpdates + step - initial.step };
  }

  /** Where all updates begin at once: first those that others make meanwhile, then this shard's, in forward order. */
  get #updateOrder(): number[] {
    const { layouts, offload } = this.#prepared().plan;
    const away = offload === undefined ? [] : offloadedBlocks(layouts, offload.ratio);
    const here = this.#trained.flatMap(({ index }) => (away.includes(index) ? [] : index));
    return [...away, ...here];
  }

  #order(step: number, block: number, factors: ClipFactors): void {
    const whole = this.#update(step, block, factors);
    // Whatever goes wrong is thrown where the step's end waits for all of them.
    whole.catch(() => {});
    this.#progressOf(step).updates.push(whole);
  }

  /** @returns settled once every rank has updated the block */
  async #update(step: number, block: number, { all, own }: ClipFactors): Promise<void> {
    const { plan, store, keeper } = this.#prepared();
    const progress = this.#progressOf(step);
    if (progress.skipped) return this.#announceWhole(block, step + 1);
    const divisor = this.#gradientDivisor(step);
    if (plan.clip?.by === "value") store.clampGradient(block, plan.clip.max * divisor);
    const update = {
      step,
      block,
      updateIndex: this.#progressBefore(step).numUpdates + 1,
      learningRates: progress.learningRates,
      gradientScale: all / divisor,
      ...(own === undefined ? {} : { ownScales: own.map((factor) => factor && factor / divisor) }),
    };
    const beginMs = systemClock.now();
    const updateMs = await keeper.update(update, store.takeGradient(block));
    progress.updateMs += updateMs;
    if (plan.trace) tellActivity(this.#context, "update", update, beginMs);
    await this.#announceWhole(block, step + 1);
  }

  /** What an update wants of all ranks; at level 0 each has everything itself. */
  async #share({ step, block }: BlockUpdate, round: number, value: Tensor): Promise<readonly Tensor[]> {
    const { name, zero, group } = this.#prepared().plan.layouts[block] as FlatBlock;
    if (zero === 0) return [value];
    return (await this.groups.of(group).all(`update/${step}/${name}/${round}`, value)) as Tensor[];
  }

  async #announceWhole(block: number, step: number): Promise<void> {
    const { name, zero, group, trainable } = this.#prepared().plan.layouts[block] as FlatBlock;
    // At level 0 a rank has its own replica and reads nothing of its peers.
    if (zero !== 0) await this.groups.of(group).all(`whole/${step}/${name}`, null);
    // What is frozen is whole for good.
    this.#whole.reach(block, trainable ? step : Number.POSITIVE_INFINITY);
  }

  /** A checkpoint of a step keeps how far the optimizer has come: told as soon as that is known, by rank 0 for all. */
  #tellProgress(step: number): void {
    const { plan } = this.#prepared();
    if (this.#rank > 0 || this.#saving?.step !== step) return;
    if (plan.lossScale !== undefined && !this.#optimizer.has(step + 1)) return;
    const progress = this.#progressBefore(step + 1);
    this.#saving.checkpointer.tell("progress", { life: plan.life, step: step + 1, progress });
    this.#saving = undefined;
  }

  /** Whoever waits for a member that has ended is told so. */
  #abort(down: Down): void {
    const reason = this.groups.abort(down);
    this.#whole.abort(reason);
    this.#updated.abort(reason);
  }

  /**
   * A block's buffer for whole parameters. Where the block is split, the first member of its group makes one for all and
   * gives each its slice to write; all read the whole. At level 0 each rank makes its own.
   * @returns the owned range of it, writable; the caller's
   */
  async #place(layout: FlatBlock, store: ShardStore): Promise<Tensor> {
    const group = this.groups.of(layout.group);
    if (layout.zero > 0 && memberOf(layout, this.#rank) > 0) {
      const { full, slice } = await group.given(layout.name);
      store.add(layout, full);
      return slice;
    }
    const full = store.allocateFull(layout);
    const slice = sliceFor(layout, full, this.#rank);
    if (layout.zero > 0) group.give(layout, full);
    store.add(layout, full);
    return slice;
  }

  /** Here, or with the offload actor, as the plan says. */
  #keeperOf(plan: ShardPlan, owned: readonly Tensor[]): StateKeeper {
    const { layouts, optimizers, offload, numThreads, deadlineMs, slowdown, trace } = plan;
    const blocksAway = offload === undefined ? [] : offloadedBlocks(layouts, offload.ratio);
    const isAway = (layout: FlatBlock) => blocksAway.includes(layout.index);
    const rules = optimizers.map(updateRuleOf);
    const states = layouts.flatMap((layout, index) =>
      isAway(layout) ? [] : new BlockState(layout, this.#rank, rules, owned[index] as Tensor),
    );
    const here = new MemoryKeeper(states, (update, round, value) => this.#share(update, round, value));
    if (offload === undefined || this.#offload === undefined) return here;
    const away = new RemoteKeeper(
      this.#offload,
      {
        rank: this.#rank,
        layouts: layouts.filter(isAway),
        optimizers,
        home: offload.home,
        shard: this.#context.self,
        numThreads,
        deadlineMs,
        delayMs: slowdown.updateMs,
        trace,
      },
      owned.filter((_, index) => isAway(layouts[index] as FlatBlock)),
    );
    return new DividedKeeper([away, here], (block) => (blocksAway.includes(block) ? away : here));
  }

  #progressOf(step: number): StepProgress {
    const progress = this.#steps.get(step);
    if (progress === undefined) throw new Error(`[shard ${this.#rank}] step ${step} has not begun`);
    return progress;
  }

  #prepared(): { store: ShardStore; plan: ShardPlan; keeper: StateKeeper } {
    const [store, plan, keeper] = [this.#store, this.#plan, this.#keeper];
    if (store === undefined || plan === undefined || keeper === undefined)
      throw new Error("[shard] not prepared");
    return { store, plan, keeper };
  }
}

function progressOf(initial: InitialState): OptimizerProgress | undefined {
  return initial.kind === "checkpoint" ? initial.progress : undefined;
}

function notFinite(step: number, norm: number, where: string | undefined, inARow: number): TroupeError {
  const first = where === undefined ? "" : `, first in block ${where}`;
  const skipped = inARow > 1 ? ` ${inARow} steps in a row` : "";
  return new TroupeError(
    "GRADIENT_NOT_FINITE",
    `[step ${step}] expected a finite gradient norm: got ${norm}${skipped}${first} (lower the learning rate, or look at the batch)`,
    { fields: { step, norm: String(norm), block: where } },
  );
}

const ABORTED: readonly string[] = ["COLLECTIVE_ABORTED", "ACTOR_DOWN"];

/** Lets work that a dead peer has made pointless end in silence: the peer's own failure is the news. */
async function unlessAborted(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const isAborted = error instanceof TroupeError && ABORTED.includes(error.code);
    if (!isAborted) throw error;
  }
}
