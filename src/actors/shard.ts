import {
  type LocalGroupProtocol,
  ShardBody,
  type StepBegun,
  type StepUpdated,
} from "../engine/shard/index.ts";
import { TroupeError } from "../errors.ts";
import type { OptimizerProgress } from "../optim/index.ts";
import type { ShardPlan } from "../protocols/index.ts";
import { type ActorRef, type Addressed, defineActor } from "../runtime/index.ts";
import type { PresenceProtocol } from "../state/paging/index.ts";
import type { BlockUpdate } from "../state/store/index.ts";
import type { TensorRef } from "../tensor/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { OffloadProtocol } from "./offload.ts";

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
    const shard = new ShardBody(context, init);
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
