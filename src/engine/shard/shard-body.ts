import { type GroupPlace, openCarrier } from "../../collectives/index.ts";
import { ownerOf, reportActivity } from "../../inspect/index.ts";
import { loadOptimizers } from "../../optim/index.ts";
import { type FlatBlock, ranksOfWhole, sendsPart } from "../../parallel/index.ts";
import {
  type BlockUpdate,
  type CheckpointerProtocol,
  type Gathered,
  type OffloadProtocol,
  type ShardInit,
  type ShardPlan,
  type ShardProtocol,
  type StepUpdated,
  sentTo,
} from "../../protocols/index.ts";
import {
  type ActorContext,
  type ActorRef,
  type Addressed,
  type Down,
  systemClock,
} from "../../runtime/index.ts";
import { ShardPaging } from "../../state/paging/index.ts";
import {
  attach,
  chargeThreadTo,
  hold,
  setNumThreads,
  shareRef,
  type Tensor,
  type TensorRef,
} from "../../tensor/index.ts";
import { LocalGroups } from "./local-groups.ts";
import { mayLeaveOut } from "./optimizer-clock.ts";
import { type PreparedShard, prepareShard } from "./prepared-shard.ts";
import { ShardStep } from "./shard-step.ts";
import { StepEnds } from "./step-ends.ts";

/** One rank's share of the model, and what is done with it when the rank, its peers or the conductor ask. */
export class ShardBody {
  readonly groups: LocalGroups;
  readonly #ends: StepEnds;
  readonly #context: ActorContext<ShardProtocol>;
  #peers: readonly ActorRef<ShardProtocol>[] = [];
  readonly #rank: number;
  readonly #offload: ActorRef<OffloadProtocol> | undefined;
  readonly #steps = new Map<number, ShardStep>();
  /** The last that has begun. */
  #step = 0;
  #paging: ShardPaging | undefined;
  #prepared: PreparedShard | undefined;

  constructor(context: ActorContext<ShardProtocol>, init: ShardInit) {
    this.#context = context;
    this.#rank = init.rank;
    this.#offload = init.offload;
    this.groups = new LocalGroups(init.rank);
    this.#ends = new StepEnds(
      this.groups,
      () => this.#ready,
      () => this.paging,
    );
  }

  /** Of the parameters; peers ask once they know of this shard's memory. */
  get paging(): ShardPaging {
    if (this.#paging === undefined) throw new Error("[shard] not prepared");
    return this.#paging;
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
    await loadOptimizers(plan.optimizers);
    setNumThreads(plan.numThreads);
    chargeThreadTo(ownerOf(plan.groups.run, this.#rank), "working");
    this.groups.carryBy(openCarrier(plan.groups, this.#placeIn(plan)));
    const paging = new ShardPaging(this.#rank, plan, this.#peers);
    this.#paging = paging;
    this.#prepared = await prepareShard(plan, {
      rank: this.#rank,
      context: this.#context,
      offload: this.#offload,
      groups: this.groups,
      paging,
      share: (update, round, value) => this.#share(update, round, value),
      step: () => this.#step,
    });
    const { store, stateStore } = this.#prepared;
    await stateStore.fill(plan.initial, this.#context.self);
    await this.#ends.begin(plan.initial.step);
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
    if (this.#ready.trained.length === 0) await this.#ends.end(step, progress);
  }

  async gather(step: number, block: number): Promise<Gathered> {
    await this.#ends.whole(block, step);
    const { plan } = this.#ready;
    // What is frozen is whole before it is known how far the optimizer has come.
    if (mayLeaveOut(plan) && !plan.layouts[block]?.trainable) await this.#ends.ended(step);
    const layout = plan.layouts[block] as FlatBlock;
    if (this.paging.isPaged(layout)) await this.paging.pin(layout, "read");
    return { gatheredAtMs: systemClock.now(), progress: this.#ready.clock.before(step) };
  }

  release(block: number): void {
    this.paging.unpin(this.#ready.plan.layouts[block] as FlatBlock, "read");
  }

  async reduce(step: number, block: number, gradient: TensorRef): Promise<void> {
    const { store, plan, agreement, delayed, trained } = this.#ready;
    const progress = this.#progressOf(step);
    const layout = plan.layouts[block] as FlatBlock;
    this.#context.board.set("reduce", layout.name, step);
    const beginMs = systemClock.now();
    const key = `reduce/${step}/${layout.name}`;
    const flat = hold(() => attach(gradient));
    await store.reduce(block, key, flat, this.groups.of(layout.group));
    await delayed?.next();
    const sums = agreement.squareSums(layout);
    if (sums !== undefined) progress.sums.set(block, sums);
    progress.lookAtGradient(layout);
    progress.reducing.add(beginMs, systemClock.now());
    if (plan.trace) reportActivity(this.#context, "reduce", { step, block }, beginMs);
    progress.numReduced += 1;
    this.#ends.reduced(step, block, progress);
    if (progress.numReduced === trained.length) await this.#ends.end(step, progress);
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
    await this.#ends.ended(step + 1);
    const progress = this.#progressOf(step);
    const { plan, clock } = this.#ready;
    const lossScale = clock.before(step).lossScale?.scale;
    this.#steps.delete(step);
    clock.forget(step);
    return progress.ended(plan.groups.run, this.#rank, lossScale);
  }

  async snapshot(step: number, checkpointer: ActorRef<CheckpointerProtocol>): Promise<void> {
    const { plan, stateStore, clock } = this.#ready;
    const blocks = plan.layouts.filter((layout) => sendsPart(layout, this.#rank)).map(({ index }) => index);
    stateStore.snapshot({ step, generation: plan.generation, rank: this.#rank, checkpointer, blocks });
    // One rank tells it for all.
    if (this.#rank === 0) clock.tellAfter(step, checkpointer);
    if (this.#ends.hasEnded(step + 1)) await stateStore.settle(step);
  }

  stop(): void {
    this.#prepared?.stateStore.stop();
    this.#prepared?.store.dispose();
    this.#paging?.dispose();
    this.groups[Symbol.dispose]();
  }

  #placeIn({ generation, deadlineMs }: ShardPlan): GroupPlace {
    return { group: "shards", generation, rank: this.#rank, size: this.#peers.length, deadlineMs };
  }

  /** What an update wants of all ranks that have some of the block's parameters. */
  async #share({ step, block }: BlockUpdate, round: number, value: Tensor): Promise<readonly Tensor[]> {
    const layout = this.#ready.plan.layouts[block] as FlatBlock;
    const ranks = ranksOfWhole(layout, this.#rank);
    if (ranks.length === 1) return [value];
    return this.groups.of(ranks).allGather(`update/${step}/${layout.name}/${round}`, value);
  }

  /** Whoever waits for a member that has ended is told so. */
  #abort(down: Down): void {
    const reason = this.groups.abort(down);
    this.#ends.abort(reason);
    this.#paging?.abort(reason);
  }

  #progressOf(step: number): ShardStep {
    const progress = this.#steps.get(step);
    if (progress === undefined) throw new Error(`[shard ${this.#rank}] step ${step} has not begun`);
    return progress;
  }

  get #ready(): PreparedShard {
    if (this.#prepared === undefined) throw new Error("[shard] not prepared");
    return this.#prepared;
  }
}
