import { hold, moveRef, type Tensor } from "../../../compute/tensor/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import { type OffloadPlan, type OffloadProtocol, sentTo } from "../../protocols/index.ts";
import type { OptimizerStateStore } from "./state-store.ts";

/**
 * Keeps the state in an offload actor: gradients go there as refs, and it writes the new parameters in place.
 * @param ownedOfBlocks - of each block of the plan, the owned range of its parameters, writable; ownership passes
 */
export function remoteStateStore(
  offload: ActorRef<OffloadProtocol>,
  plan: Omit<OffloadPlan, "owned" | "initial">,
  ownedOfBlocks: readonly Tensor[],
): OptimizerStateStore {
  const { deadlineMs } = plan;
  const blocksAway = new Set(plan.layouts.map(({ index }) => index));
  return {
    async fill(initial) {
      const owned = ownedOfBlocks.map((tensor) => moveRef(tensor, sentTo(offload)));
      await offload.ask("prepare", { ...plan, owned, initial }, { deadlineMs });
    },
    update(update, gradient) {
      const message = { update, gradient: moveRef(hold(gradient), sentTo(offload)) };
      return offload.ask("update", message, { deadlineMs });
    },
    // The shard itself keeps what is declared frozen.
    async keepState() {},
    snapshot(order) {
      const blocks = order.blocks.filter((block) => blocksAway.has(block));
      offload.tell("snapshot", { ...order, blocks });
    },
    async settle(step) {
      offload.tell("settle", { step });
    },
    // The offload actor stops by itself.
    stop() {},
  };
}
