import { loadOptimizers, updateRuleOf } from "../compute/optim/index.ts";
import { BlockState } from "../compute/parallel/index.ts";
import {
  attach,
  chargeThreadTo,
  copyBeside,
  emptyPinned,
  hold,
  moveRef,
  onHost,
  scope,
  setNumThreads,
  type Tensor,
  type TensorRef,
} from "../compute/tensor/index.ts";
import { type ActorContext, defineActor, systemClock } from "../runtime/index.ts";
import { ownerOf, reportActivity } from "./inspect/index.ts";
import * as protocol from "./protocols/index.ts";
import { FileStateStore, MemoryStateStore, type OptimizerStateStore, Turns } from "./shard/store/index.ts";
import { remotePaging } from "./state/paging/index.ts";

export default defineActor<protocol.OffloadProtocol>({
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
          await loadOptimizers(plan.optimizers);
          offload = new Offload(context, plan);
          return offload.prepare();
        },
        update: ({ update, gradient }) => prepared().update(update, gradient),
        snapshot: (order) => prepared().stateStore.snapshot(order),
        settle: ({ step }) => prepared().stateStore.settle(step),
      },
      stop: () => offload?.stateStore.stop(),
    };
  },
});

/** A device's parameters of a block, and their host copy, which is updated. */
interface DeviceCopy {
  readonly owned: Tensor;
  readonly host: Tensor;
  /** Fulfilled once the host copy may be written again. */
  published: Promise<void>;
}

class Offload {
  readonly stateStore: OptimizerStateStore;
  readonly #context: ActorContext<protocol.OffloadProtocol>;
  readonly #plan: protocol.OffloadPlan;
  readonly #turns: Turns;
  /** If ranks compute on a device: their parameters and the host copies that are updated, by block. */
  readonly #onDevice = new Map<number, DeviceCopy>();

  constructor(context: ActorContext<protocol.OffloadProtocol>, plan: protocol.OffloadPlan) {
    this.#context = context;
    this.#plan = plan;
    this.#turns = new Turns(plan.delayMs);
    setNumThreads(plan.numThreads);
    chargeThreadTo(ownerOf(plan.run, plan.rank), "working");
    const rules = plan.optimizers.map(updateRuleOf);
    const states = plan.layouts.map((layout, index) => {
      const owned = hold(() => attach(plan.owned[index] as TensorRef));
      if (owned.device === "cpu") return new BlockState(layout, plan.rank, rules, owned);
      const host = hold(() => emptyPinned(owned));
      scope(() => host.zero_());
      this.#onDevice.set(layout.index, { owned, host, published: Promise.resolve() });
      return new BlockState(layout, plan.rank, rules, host);
    });
    const share = (update: protocol.BlockUpdate, round: number, value: Tensor) =>
      this.#share(update, round, value);
    const paging = remotePaging(plan.shard, plan.paged, plan.deadlineMs);
    const { home } = plan;
    this.stateStore =
      home.kind === "nvme"
        ? new FileStateStore(home.directory, states, this.#turns, share, paging, (block) =>
            this.#placeOf(block),
          )
        : new MemoryStateStore(states, share, paging, () => "offload");
  }

  async prepare(): Promise<{ prepared: true }> {
    await this.stateStore.fill(this.#plan.initial, this.#context.self);
    for (const block of this.#onDevice.keys()) this.#publish(block);
    return { prepared: true };
  }

  async update(update: protocol.BlockUpdate, gradient: TensorRef): Promise<protocol.BlockUpdated> {
    const { step, block } = update;
    this.#context.board.set("update", this.#nameOf(block), step);
    const attached = await onHost(hold(() => attach(gradient)));
    await this.#onDevice.get(block)?.published;
    // State in a file waits for the disk first and takes its turn then.
    if (this.#plan.home.kind === "host") await this.#turns.next(this.#placeOf(block));
    const updated = await this.stateStore.update(update, attached);
    this.#publish(block);
    if (this.#plan.trace)
      reportActivity(
        this.#context,
        "update",
        update,
        systemClock.now() - updated.updateMs - this.#plan.delayMs,
      );
    return updated;
  }

  /** Copies a block's updated parameters to the device. */
  #publish(block: number): void {
    const copy = this.#onDevice.get(block);
    if (copy === undefined) return;
    const publishing = copyBeside(copy.owned, copy.host);
    // Device work after the update is ordered behind the copy; the host does not wait.
    publishing.follow();
    copy.published = publishing.arrived();
  }

  async #share(update: protocol.BlockUpdate, round: number, value: Tensor): Promise<readonly Tensor[]> {
    const { shard, deadlineMs } = this.#plan;
    const message = { update, round, value: moveRef(value, protocol.sentTo(shard)) };
    const { values } = await shard.ask("share", message, { deadlineMs });
    return values.map((ref) => hold(() => attach(ref)));
  }

  /**
   * A waiting update's place: the block that forward needs first goes first, the root, which is reduced last. If updates
   * exchange with all ranks they go in order of arrival, the same on all ranks: with few buffers, ranks that hold different
   * blocks would wait for each other for ever.
   */
  #placeOf(block: number): number {
    return this.#plan.optimizers.some((spec) => updateRuleOf(spec).exchanges) ? 0 : block;
  }

  #nameOf(block: number): string {
    return this.#plan.layouts.find(({ index }) => index === block)?.name ?? "";
  }
}
