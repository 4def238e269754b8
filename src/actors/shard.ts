import { keepStore, type Store } from "../compute/collectives/index.ts";
import { loadOptimizers } from "../compute/optim/index.ts";
import {
  attach,
  chargeThreadTo,
  type Device,
  enterDevice,
  hold,
  setNumThreads,
  shareRef,
  type TensorRef,
} from "../compute/tensor/index.ts";
import { type ActorContext, type ActorRef, type Down, defineActor } from "../runtime/index.ts";
import { bindRank } from "./bind-rank.ts";
import { answerRelay, type KnownMembers } from "./engine/relay/index.ts";
import { ownerOf } from "./inspect/index.ts";
import {
  type Joined,
  type Relay,
  type Relayed,
  type ShardInit,
  type ShardPlan,
  type ShardProtocol,
  sentTo,
} from "./protocols/index.ts";
import { groupsOfShard, Shard, ShardCarriers, ShardGroups } from "./shard/index.ts";
import { ShardPaging } from "./state/paging/index.ts";

export default defineActor<ShardProtocol, ShardInit>({
  lanes: { contribute: "control", own: "control" },
  // biome-ignore format: a list
  concurrent: [
    "prepare", "begin", "agree", "frozen", "scored", "gather", "release", "pin", "unpin", "reduce", "share",
    "finish", "take", "snapshot", "relay",
  ],
  async start(context, init) {
    const member = new ShardMember(context, init);
    return {
      handlers: {
        join: ({ peers }) => member.join(peers),
        relay: (relay) => member.relay(relay),
        prepare: (plan) => member.prepare(plan),
        begin: ({ step, ...begun }) => member.shard.begin(step, begun),
        agree: ({ step }) => member.agree(step),
        frozen: async ({ step }) => ({ frozen: await member.shard.flags.at(step) }),
        scored: ({ step, ...scored }) => member.shard.scored(step, scored),
        gather: ({ step, block }) => member.shard.gather(step, block),
        release: ({ block }) => member.shard.release(block),
        pin: (use) => member.paging.pinFor(use),
        unpin: (use) => member.paging.unpinFor(use),
        reduce: ({ step, block, gradient }) =>
          member.shard.reduce(
            step,
            block,
            hold(() => attach(gradient)),
          ),
        own: (given) => member.groups.owned(given),
        contribute: (value) => member.groups.contributed(value),
        share: (message) => member.share(message),
        finish: ({ step }) => member.shard.finish(step),
        take: async ({ step, initial }) => {
          await member.shard.take(step, initial);
          return {};
        },
        snapshot: ({ step, checkpointer }) => member.shard.snapshot(step, checkpointer),
        noted: () => ({}),
        left: ({ step }) => member.shard.left(step),
      },
      stop: () => member.stop(),
    };
  },
});

/** A shard among its peers: knows them, ends with them, and holds its memory once that is planned. */
class ShardMember {
  readonly groups: ShardGroups;
  readonly #context: ActorContext<ShardProtocol>;
  readonly #init: ShardInit;
  #peers: readonly ActorRef<ShardProtocol>[] = [];
  #known: KnownMembers = { ranks: [], shards: [] };
  /** Store of the rendezvous of this host's groups, if this shard keeps it. */
  #store: Store | undefined;
  #paging: ShardPaging | undefined;
  #shard: Shard | undefined;
  #aborted: Error | undefined;

  constructor(context: ActorContext<ShardProtocol>, init: ShardInit) {
    this.#context = context;
    this.#init = init;
    this.groups = new ShardGroups(init.rank);
  }

  get shard(): Shard {
    if (this.#shard === undefined) throw new Error("[shard] not prepared");
    return this.#shard;
  }

  /** Paging of the parameters; peers ask once they know of this shard's memory. */
  get paging(): ShardPaging {
    if (this.#paging === undefined) throw new Error("[shard] not prepared");
    return this.#paging;
  }

  relay(relay: Relay): Promise<Relayed> {
    if (relay.kind !== "join") return answerRelay(relay, this.#known);
    const { peers, ranks } = relay.message as ShardProtocol["join"]["in"];
    this.#known = { shards: peers, ranks };
    const answered = answerRelay(relay, this.#known);
    this.#store = keepStore();
    return answered;
  }

  join(peers: readonly ActorRef<ShardProtocol>[]): Joined {
    this.#peers = peers;
    this.groups.join(peers);
    this.#context.watchSiblings((down) => this.#abort(down));
    return { store: this.#store?.rendezvous };
  }

  async prepare(plan: ShardPlan): Promise<{ fulls: TensorRef[] }> {
    await loadOptimizers(plan.optimizers);
    const { rank, offload } = this.#init;
    const { execution, generation, peers } = plan;
    const { deadlineMs, devices } = execution;
    bindRank(rank, execution, peers.groups);
    setNumThreads(execution.threadsPerRank);
    enterDevice(devices[rank] as Device);
    chargeThreadTo(ownerOf(peers.groups.run, rank), "working");
    const place = { generation, rank, devices, deadlineMs };
    const carriers = new ShardCarriers(peers.groups, place, groupsOfShard(plan, rank));
    this.groups.carryBy(carriers, peers.groups.reduction);
    const paging = new ShardPaging(rank, plan, this.#peers);
    this.#paging = paging;
    const { groups } = this;
    const shard = await Shard.place(plan, { context: this.#context, rank, offload, groups, paging });
    this.#shard = shard;
    // A peer that ended meanwhile was reported before `shard` could hear it.
    if (this.#aborted !== undefined) shard.abort(this.#aborted);
    return { fulls: await shard.fill() };
  }

  async share({ update, round, value }: ShardProtocol["share"]["in"]): Promise<{ values: TensorRef[] }> {
    const mine = hold(() => attach(value));
    const all = await this.shard.share(update, round, mine);
    const offload = this.#init.offload as NonNullable<ShardInit["offload"]>;
    const values = all.map((tensor) => shareRef(tensor, sentTo(offload)));
    for (const tensor of all) tensor.dispose();
    return { values };
  }

  async agree(step: number): Promise<{ agreed: true }> {
    await this.shard.agree(step, this.#peers);
    return { agreed: true };
  }

  stop(): void {
    this.#shard?.dispose();
    this.#paging?.dispose();
    this.groups[Symbol.dispose]();
    this.#store?.[Symbol.dispose]();
  }

  /** Rejects all waits for a member that has ended. */
  #abort(down: Down): void {
    const reason = this.groups.abort(down);
    this.#aborted ??= reason;
    this.#shard?.abort(reason);
    this.#paging?.abort(reason);
  }
}
