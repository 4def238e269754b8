import { hold, moveRef, type Tensor } from "../../../compute/tensor/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import {
  type BlockUpdate,
  type BlockUpdated,
  type OffloadPlan,
  type OffloadProtocol,
  type SnapshotOrder,
  sentTo,
} from "../../protocols/index.ts";
import type { OptimizerStateStore } from "./state-store.ts";

/** Keeps the state in an offload actor: gradients go there as refs, and it writes the new parameters in place. */
export class RemoteStateStore implements OptimizerStateStore {
  readonly #offload: ActorRef<OffloadProtocol>;
  readonly #deadline: { readonly deadlineMs: number };
  readonly #blocks: ReadonlySet<number>;
  readonly #plan: Omit<OffloadPlan, "owned" | "initial">;
  readonly #owned: readonly Tensor[];

  /** @param owned - of each block of the plan, the owned range of its parameters, writable; ownership passes */
  constructor(
    offload: ActorRef<OffloadProtocol>,
    plan: Omit<OffloadPlan, "owned" | "initial">,
    owned: readonly Tensor[],
  ) {
    this.#offload = offload;
    this.#plan = plan;
    this.#owned = owned;
    this.#deadline = { deadlineMs: plan.deadlineMs };
    this.#blocks = new Set(plan.layouts.map(({ index }) => index));
  }

  async fill(initial: OffloadPlan["initial"]): Promise<void> {
    const owned = this.#owned.map((tensor) => moveRef(tensor, sentTo(this.#offload)));
    await this.#offload.ask("prepare", { ...this.#plan, owned, initial }, this.#deadline);
  }

  update(update: BlockUpdate, gradient: Tensor): Promise<BlockUpdated> {
    const message = { update, gradient: moveRef(hold(gradient), sentTo(this.#offload)) };
    return this.#offload.ask("update", message, this.#deadline);
  }

  /** The shard itself keeps what is declared frozen. */
  async keepState(): Promise<void> {}

  snapshot(order: SnapshotOrder): void {
    this.#offload.tell("snapshot", {
      ...order,
      blocks: order.blocks.filter((block) => this.#blocks.has(block)),
    });
  }

  async settle(step: number): Promise<void> {
    this.#offload.tell("settle", { step });
  }

  /** The offload actor stops by itself. */
  stop(): void {}
}
