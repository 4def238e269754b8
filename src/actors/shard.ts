import { ShardBody } from "../engine/shard/index.ts";
import { TroupeError } from "../errors.ts";
import type { ShardInit, ShardProtocol } from "../protocols/index.ts";
import { defineActor } from "../runtime/index.ts";

export default defineActor<ShardProtocol, ShardInit>({
  lanes: { contribute: "control", own: "control" },
  concurrent: [
    "prepare",
    "begin",
    "scored",
    "gather",
    "release",
    "pin",
    "unpin",
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
        pin: (use) => shard.paging.pinFor(use),
        unpin: (use) => shard.paging.unpinFor(use),
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
