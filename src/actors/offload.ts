import { ownerOf, tellActivity } from "../inspect/index.ts";
import { type OptimizerSpec, updateRuleOf } from "../optim/index.ts";
import { BlockState, type FlatBlock } from "../parallel/index.ts";
import { sentTo } from "../protocols/index.ts";
import { type ActorContext, type ActorRef, defineActor, systemClock } from "../runtime/index.ts";
import type { InitialState } from "../state/initial/index.ts";
import { AskedPresence } from "../state/paging/index.ts";
import {
  type BlockUpdate,
  type BlockUpdated,
  FileKeeper,
  MemoryKeeper,
  type SnapshotOrder,
  type StateKeeper,
  Turns,
} from "../state/store/index.ts";
import {
  attach,
  chargeThreadTo,
  hold,
  moveRef,
  setNumThreads,
  type Tensor,
  type TensorRef,
} from "../tensor/index.ts";
import type { ShardProtocol } from "./shard.ts";

/** Where offloaded state rests: in this actor's own tensors, or in a file on the disk of `directory`. Plain data. */
export type StateHome = { readonly kind: "host" } | { readonly kind: "nvme"; readonly directory: string };

/** What an offload actor takes over from its shard. Plain data, but for the tensors. */
export interface OffloadPlan {
  /** Names the run in the process. */
  readonly run: string;
  readonly rank: number;
  /** Of the blocks whose state is kept here. */
  readonly layouts: readonly FlatBlock[];
  /** Of each, the owned range of the parameters that the ranks read, writable; ownership passes. */
  readonly owned: readonly TensorRef[];
  readonly optimizers: readonly OptimizerSpec[];
  readonly initial: InitialState;
  readonly home: StateHome;
  readonly shard: ActorRef<ShardProtocol>;
  readonly numThreads: number;
  /** Names of the blocks whose parameters are in memory only while they are used, which the shard sees to. */
  readonly comingAndGoing: readonly string[];
  /** How long one answer of the shard may take. */
  readonly deadlineMs: number;
  /** Each update is put off for so long, on purpose. */
  readonly delayMs: number;
  /** Whether to tell of each update. */
  readonly trace: boolean;
}

/**
 * Keeps the optimizers' state of some of a rank's blocks outside its shard and updates it there, while the shard and the
 * rank go on. New parameters are written where the ranks read them; the answer says when they are.
 */
export type OffloadProtocol = {
  /** Answered when state and parameters are those of the run's beginning. */
  prepare: { in: OffloadPlan; out: { sizeBytes: number } };
  /** One optimizer step on a block; ownership of the gradient passes. */
  update: { in: { update: BlockUpdate; gradient: TensorRef }; out: BlockUpdated };
  /** Copies the state that follows a step to the checkpointer, each block before its next update. */
  snapshot: { in: SnapshotOrder };
  /** All updates of `step` are made. */
  settle: { in: { step: number } };
};

export default defineActor<OffloadProtocol>({
  concurrent: ["update", "settle"],
  async start(context) {
    let offload: Offload | undefined;
    const prepared = () => {
      if (offload === undefined) throw new Error("[offload] not prepared");
      return offload;
    };
    return {
      handlers: {
        async prepare(plan) {
          offload = new Offload(context, plan);
          return offload.prepare();
        },
        update: ({ update, gradient }) => prepared().update(update, gradient),
        snapshot: (order) => prepared().keeper.snapshot(order),
        settle: ({ step }) => prepared().keeper.settle(step),
      },
      stop: () => offload?.keeper.stop(),
    };
  },
});

/** Optimizers whose update of a slice asks all ranks for theirs. */
const SHARING: readonly OptimizerSpec["kind"][] = ["lamb", "adafactor"];

class Offload {
  readonly keeper: StateKeeper;
  readonly #context: ActorContext<OffloadProtocol>;
  readonly #plan: OffloadPlan;
  readonly #turns: Turns;
  readonly #sizeBytes: number;

  constructor(context: ActorContext<OffloadProtocol>, plan: OffloadPlan) {
    this.#context = context;
    this.#plan = plan;
    this.#turns = new Turns(plan.delayMs);
    setNumThreads(plan.numThreads);
    chargeThreadTo(ownerOf(plan.run, plan.rank), "working");
    const rules = plan.optimizers.map(updateRuleOf);
    const states = plan.layouts.map((layout, index) => {
      const owned = hold(() => attach(plan.owned[index] as TensorRef));
      return new BlockState(layout, plan.rank, rules, owned);
    });
    const numels = states.flatMap(({ layouts }) => layouts.map(({ numel }) => numel));
    this.#sizeBytes = 4 * numels.reduce((sum, numel) => sum + numel, 0);
    const share = (update: BlockUpdate, round: number, value: Tensor) => this.#share(update, round, value);
    const presence = new AskedPresence(plan.shard, plan.comingAndGoing, plan.deadlineMs);
    const { home } = plan;
    this.keeper =
      home.kind === "nvme"
        ? new FileKeeper(home.directory, states, this.#turns, share, presence, (block) =>
            this.#placeOf(block),
          )
        : new MemoryKeeper(states, share, presence, () => "offload");
  }

  async prepare(): Promise<{ sizeBytes: number }> {
    await this.keeper.fill(this.#plan.initial, this.#context.self);
    return { sizeBytes: this.#sizeBytes };
  }

  async update(update: BlockUpdate, gradient: TensorRef): Promise<BlockUpdated> {
    const { step, block } = update;
    this.#context.board.set("update", this.#nameOf(block), step);
    const attached = hold(() => attach(gradient));
    // What rests in a file waits for the disk first and takes its turn then.
    if (this.#plan.home.kind === "host") await this.#turns.next(this.#placeOf(block));
    const updated = await this.keeper.update(update, attached);
    if (this.#plan.trace)
      tellActivity(
        this.#context,
        "update",
        update,
        systemClock.now() - updated.updateMs - this.#plan.delayMs,
      );
    return updated;
  }

  async #share(update: BlockUpdate, round: number, value: Tensor): Promise<readonly Tensor[]> {
    const { shard, deadlineMs } = this.#plan;
    const message = { update, round, value: moveRef(value, sentTo(shard)) };
    const { values } = await shard.ask("share", message, { deadlineMs });
    return values.map((ref) => hold(() => attach(ref)));
  }

  /**
   * Of updates that wait, the block that forward needs first goes first: the root, which is reduced last. Where an
   * update asks all ranks for their share they go as they come, which is in one order on all ranks: with few buffers,
   * ranks that hold different blocks would wait for each other for ever.
   */
  #placeOf(block: number): number {
    return this.#plan.optimizers.some(({ kind }) => SHARING.includes(kind)) ? 0 : block;
  }

  #nameOf(block: number): string {
    return this.#plan.layouts.find(({ index }) => index === block)?.name ?? "";
  }
}
