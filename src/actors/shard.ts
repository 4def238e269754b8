import { setImmediate as nextTurn } from "node:timers/promises";
import { TroupeError } from "../errors.ts";
import type { OptimizerProgress } from "../optim/index.ts";
import { type FlatBlock, Milestones, type ShardStore } from "../parallel/index.ts";
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
  hold,
  setNumThreads,
  shareRef,
  type Tensor,
  type TensorRef,
} from "../tensor/index.ts";
import { tellActivity } from "./activity.ts";
import { BlockPresence } from "./block-presence.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import { type ClipFactors, GradientAgreement } from "./gradient-agreement.ts";
import { ownerOf } from "./held-memory.ts";
import { keeperOf } from "./keep-state.ts";
import type { LocalGroupProtocol } from "./local-group.ts";
import { LocalGroups } from "./local-groups.ts";
import type { OffloadProtocol } from "./offload.ts";
import { OptimizerClock } from "./optimizer-clock.ts";
import { placeBlocks } from "./place-blocks.ts";
import type { PresenceProtocol } from "./presence.ts";
import { sentTo } from "./recipient.ts";
import { mayLeaveOut, type ShardPlan } from "./shard-plan.ts";
import { ShardStep, type StepBegun, type StepUpdated } from "./shard-step.ts";
import { ShardUpdates } from "./shard-updates.ts";
import { sendsPart } from "./snapshot.ts";
import type { BlockUpdate, StateKeeper } from "./state-keeper.ts";
import { Turns } from "./turns.ts";

/** Answer to a gather. */
export interface Gathered {
  /** When the parameters were whole, in milliseconds of the process's clock. */
  readonly wholeAtMs: number;
  /** How far the optimizer has come before this step. */
  readonly progress: OptimizerProgress;
}

/** Steps count from 0; "the parameters of step s" have seen s updates. */
export type ShardProtocol = LocalGroupProtocol &
  PresenceProtocol & {
    /** Every shard of the world, in rank order; and whose end aborts collectives. */
    join: {
      in: { peers: readonly ActorRef<ShardProtocol>[]; ranks: readonly Addressed[] };
      out: { joined: true };
    };
    /** Allocates and fills every block; answers with the buffers the rank reads parameters from. */
    prepare: { in: ShardPlan; out: { fulls: readonly TensorRef[] } };
    /** Learning rates of a step, and what it is inspected for; sent before its first gradient. */
    begin: { in: { step: number } & StepBegun };
    /** The losses of the rank's micro-batches, where it tells them; sent before its last gradients. */
    scored: { in: { step: number; lossesNats: readonly number[] } };
    /** Answered once the block's parameters of `step` are whole. */
    gather: { in: { step: number; block: number }; out: Gathered };
    /** The rank gives up what it has gathered of a block whose parameters are offloaded. */
    release: { in: { block: number } };
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
  concurrent: [
    "prepare",
    "begin",
    "scored",
    "gather",
    "release",
    "enter",
    "leave",
    "reduce",
    "share",
    "finish",
  ],
  async start(context, init) {
    const shard = new Shard(context, init);
    return {
      handlers: {
        join: ({ peers, ranks }) => shard.join(peers, ranks),
        prepare: (plan) => shard.prepare(plan),
        begin: (message) => shard.begin(message),
        scored: ({ step, lossesNats }) => unlessAborted(shard.scored(step, lossesNats)),
        gather: ({ step, block }) => shard.gather(step, block),
        release: ({ block }) => shard.release(block),
        enter: (use) => shard.presence.enterFor(use),
        leave: (use) => shard.presence.leaveFor(use),
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

/** What a shard works with once it is prepared. */
interface Prepared {
  readonly plan: ShardPlan;
  readonly store: ShardStore;
  readonly keeper: StateKeeper;
  readonly agreement: GradientAgreement;
  readonly clock: OptimizerClock;
  readonly updates: ShardUpdates;
  /** In which reductions end, where each is put off on purpose. */
  readonly delayed: Turns | undefined;
  /** The flat blocks that are reduced and updated. */
  readonly trained: readonly FlatBlock[];
}

const ALL_BLOCKS = -1;

class Shard {
  readonly groups: LocalGroups;
  readonly #context: ActorContext<ShardProtocol>;
  #peers: readonly ActorRef<ShardProtocol>[] = [];
  readonly #rank: number;
  readonly #offload: ActorRef<OffloadProtocol> | undefined;
  /** By block, the step whose parameters every rank has written. */
  readonly #whole = new Milestones();
  /** Of {@link ALL_BLOCKS}, the number of steps whose updates are all made here and whose norm is known. */
  readonly #updated = new Milestones();
  readonly #steps = new Map<number, ShardStep>();
  /** The last that has begun. */
  #step = 0;
  #presence: BlockPresence | undefined;
  #prepared: Prepared | undefined;

  constructor(context: ActorContext<ShardProtocol>, init: ShardInit) {
    this.#context = context;
    this.#rank = init.rank;
    this.#offload = init.offload;
    this.groups = new LocalGroups(init.rank);
  }

  /** Of the parameters; peers ask once they know of this shard's memory. */
  get presence(): BlockPresence {
    if (this.#presence === undefined) throw new Error("[shard] not prepared");
    return this.#presence;
  }

  join(peers: readonly ActorRef<ShardProtocol>[], ranks: readonly Addressed[]): { joined: true } {
    this.#peers = peers;
    this.groups.join(peers);
    const others = peers.filter((_, rank) => rank !== this.#rank);
    const helpers = this.#offload === undefined ? [] : [this.#offload];
    for (const member of [...others, ...ranks, ...helpers])
      this.#context.watch(member, (down) => this.#abort(down));
    return { joined: true };
  }

  async prepare(plan: ShardPlan): Promise<{ fulls: TensorRef[] }> {
    setNumThreads(plan.numThreads);
    chargeThreadTo(ownerOf(plan.run, this.#rank), "working");
    const presence = new BlockPresence(this.#rank, plan, this.#peers);
    this.#presence = presence;
    const { store, owned } = await placeBlocks(plan, {
      rank: this.#rank,
      groups: this.groups,
      presence,
      onTransfer: (block, direction, beginMs) =>
        tellActivity(this.#context, direction, { step: this.#step, block }, beginMs),
    });
    const keeper = keeperOf(plan, owned, {
      rank: this.#rank,
      shard: this.#context.self,
      offload: this.#offload,
      share: (update, round, value) => this.#share(update, round, value),
      presence,
    });
    const clock = new OptimizerClock(plan);
    const onUpdate = (update: BlockUpdate, beginMs: number) => {
      if (plan.trace) tellActivity(this.#context, "update", update, beginMs);
    };
    this.#prepared = {
      plan,
      store,
      keeper,
      agreement: new GradientAgreement(plan, store, this.groups),
      clock,
      updates: new ShardUpdates({ plan, store, keeper, clock, presence, onUpdate }),
      delayed: plan.slowdown.reduceMs > 0 ? new Turns(plan.slowdown.reduceMs) : undefined,
      trained: plan.layouts.filter((layout) => layout.trainable),
    };
    await keeper.fill(plan.initial, this.#context.self);
    this.#updated.reach(ALL_BLOCKS, plan.initial.step);
    await Promise.all(plan.layouts.map((layout) => this.#announceWhole(layout.index, plan.initial.step)));
    return {
      fulls: plan.layouts.map((layout) => shareRef(store.full(layout.index), { owner: plan.reader })),
    };
  }

  begin(begun: ShardProtocol["begin"]["in"]): void {
    this.#step = begun.step;
    this.#steps.set(begun.step, new ShardStep(this.#rank, this.#ready.store, begun));
  }

  async scored(step: number, lossesNats: readonly number[]): Promise<void> {
    const progress = this.#progressOf(step);
    progress.lossesNats = lossesNats;
    // A stage of which everything is frozen has nothing to reduce, and still takes part in what all agree on.
    if (this.#ready.trained.length === 0) await this.#endStep(step, progress);
  }

  async gather(step: number, block: number): Promise<Gathered> {
    await this.#whole.until(block, step);
    const { plan } = this.#ready;
    // What is frozen is whole before it is known how far the optimizer has come.
    if (mayLeaveOut(plan) && !plan.layouts[block]?.trainable) await this.#updated.until(ALL_BLOCKS, step);
    const layout = plan.layouts[block] as FlatBlock;
    if (this.presence.comesAndGoes(layout)) await this.presence.enter(layout, "read");
    return { wholeAtMs: systemClock.now(), progress: this.#ready.clock.before(step) };
  }

  release(block: number): void {
    this.presence.leave(this.#ready.plan.layouts[block] as FlatBlock, "read");
  }

  async reduce(step: number, block: number, gradient: TensorRef): Promise<void> {
    const { store, plan, agreement, delayed, trained } = this.#ready;
    const progress = this.#progressOf(step);
    const layout = plan.layouts[block] as FlatBlock;
    this.#context.board.set("reduce", layout.name, step);
    const beginMs = systemClock.now();
    const flats = await this.groups.of(layout.group).all(
      `reduce/${step}/${layout.name}`,
      hold(() => attach(gradient)),
    );
    await delayed?.next();
    store.reduce(block, flats as Tensor[]);
    const sums = agreement.squareSums(layout);
    if (sums !== undefined) progress.sums.set(block, sums);
    progress.lookAtGradient(layout);
    progress.reducing.add(beginMs, systemClock.now());
    if (plan.trace) tellActivity(this.#context, "reduce", { step, block }, beginMs);
    for (const flat of flats) flat?.dispose();
    progress.numReduced += 1;
    if (!agreement.isAwaited) this.#order(step, block, { all: 1 });
    if (progress.numReduced === trained.length) await this.#endStep(step, progress);
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
    const progress = this.#progressOf(step);
    const { plan, clock } = this.#ready;
    const lossScale = clock.before(step).lossScale?.scale;
    this.#steps.delete(step);
    clock.forget(step);
    return progress.ended(plan.run, this.#rank, lossScale);
  }

  async snapshot(step: number, checkpointer: ActorRef<CheckpointerProtocol>): Promise<void> {
    const { plan, keeper, clock } = this.#ready;
    const blocks = plan.layouts.filter((layout) => sendsPart(layout, this.#rank)).map(({ index }) => index);
    keeper.snapshot({ step, life: plan.life, rank: this.#rank, checkpointer, blocks });
    // One rank tells it for all.
    if (this.#rank === 0) clock.tellAfter(step, checkpointer);
    if (this.#updated.has(ALL_BLOCKS, step + 1)) await keeper.settle(step);
  }

  stop(): void {
    this.#prepared?.keeper.stop();
    this.#prepared?.store.dispose();
    this.#presence?.dispose();
  }

  /** Gradient whole on every rank: the norm, the updates that waited for it, and what waits for the step's end. */
  async #endStep(step: number, progress: ShardStep): Promise<void> {
    const { plan, store, keeper, agreement, clock, updates } = this.#ready;
    const { sums, lossesNats = [] } = progress;
    const agreed = await agreement.agree(step, sums, clock.divisor(step), lossesNats);
    progress.agreed = agreed;
    clock.advance(step, agreed.withheld);
    if (agreed.withheld) store.dropGradients();
    if (agreement.isAwaited) {
      for (const block of updates.order) {
        this.#order(step, block, agreed.factors);
        // One block a turn, so that the next forward's gathers are answered while later blocks are still updated.
        await nextTurn();
      }
    }
    await Promise.all(progress.updates);
    await progress.lookAtParameters(plan.layouts, clock.divisor(step), this.presence);
    this.#updated.reach(ALL_BLOCKS, step + 1);
    await keeper.settle(step);
  }

  #order(step: number, block: number, factors: ClipFactors): void {
    const whole = this.#update(step, block, factors);
    // Whatever goes wrong is thrown where the step's end waits for all of them.
    whole.catch(() => {});
    this.#progressOf(step).updates.push(whole);
  }

  /** @returns settled once every rank has updated the block */
  async #update(step: number, block: number, factors: ClipFactors): Promise<void> {
    const progress = this.#progressOf(step);
    if (!progress.agreed?.withheld) await this.#ready.updates.make(step, block, factors, progress);
    await this.#announceWhole(block, step + 1);
  }

  /** What an update wants of all ranks; at level 0 each has everything itself. */
  async #share({ step, block }: BlockUpdate, round: number, value: Tensor): Promise<readonly Tensor[]> {
    const { name, zero, group } = this.#ready.plan.layouts[block] as FlatBlock;
    if (zero === 0) return [value];
    return (await this.groups.of(group).all(`update/${step}/${name}/${round}`, value)) as Tensor[];
  }

  async #announceWhole(block: number, step: number): Promise<void> {
    const { name, zero, group, trainable } = this.#ready.plan.layouts[block] as FlatBlock;
    // At level 0 a rank has its own replica and reads nothing of its peers.
    if (zero !== 0) await this.groups.of(group).all(`whole/${step}/${name}`, null);
    // What is frozen is whole for good.
    this.#whole.reach(block, trainable ? step : Number.POSITIVE_INFINITY);
  }

  /** Whoever waits for a member that has ended is told so. */
  #abort(down: Down): void {
    const reason = this.groups.abort(down);
    this.#whole.abort(reason);
    this.#updated.abort(reason);
    this.#presence?.abort(reason);
  }

  #progressOf(step: number): ShardStep {
    const progress = this.#steps.get(step);
    if (progress === undefined) throw new Error(`[shard ${this.#rank}] step ${step} has not begun`);
    return progress;
  }

  get #ready(): Prepared {
    if (this.#prepared === undefined) throw new Error("[shard] not prepared");
    return this.#prepared;
  }
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
