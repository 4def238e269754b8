import type {
  Carrier,
  Gathered,
  MemberRange,
  ProcessGroup,
  Reduction,
  Summed,
} from "../../../compute/collectives/index.ts";
import { type FlatBlock, ownedRange } from "../../../compute/parallel/index.ts";
import {
  attach,
  empty,
  emptyShared,
  hold,
  moveRef,
  ops,
  type RefOptions,
  scope,
  shareRef,
  type Tensor,
  type TensorRef,
} from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { ActorRef, Addressed, Down } from "../../../runtime/index.ts";
import { type ShardGroupProtocol, sentTo } from "../../protocols/index.ts";
import { Exchange } from "./exchange.ts";

/** A split block's memory as one rank has it. */
export interface SharedBlock {
  /** The gathered parameters; read-only, even for the first member. */
  readonly full: Tensor;
  /** The rank's own slice of the same memory. */
  readonly slice: Tensor;
}

/**
 * A group of shards, by messages: each brings a member's value under its key, or announces it if the carrier sends the bytes.
 * Among members that share memory values pass by reference and nothing is copied; others each get their part.
 */
export class ShardGroup implements ProcessGroup {
  /** Its name in messages: {@link groupName} of its ranks. */
  readonly name: string;
  readonly rank: number;
  readonly #ranks: readonly number[];
  readonly #peers: readonly ActorRef<ShardGroupProtocol>[];
  readonly #carrier: Carrier;
  /** Its ranks by the memory they have. */
  readonly #memories: readonly (readonly number[])[];
  readonly #reduction: Reduction;
  readonly #values: Exchange<Tensor | null>;
  /** Memory from the first member; it may come before this member asks for it. */
  readonly #given = new Exchange<{ full: TensorRef; slice: TensorRef }>(1);

  /**
   * @param ranks - the members, of the world, in order; `peers` likewise @param rank - this shard's place among them
   * @param reduction - the order of sums; if all members share memory there is only one
   */
  constructor(
    ranks: readonly number[],
    rank: number,
    peers: readonly ActorRef<ShardGroupProtocol>[],
    carrier: Carrier,
    reduction: Reduction,
  ) {
    this.name = groupName(ranks);
    this.rank = rank;
    this.#ranks = ranks;
    this.#peers = peers;
    this.#carrier = carrier;
    this.#memories = carrier.memories(ranks);
    this.#reduction = reduction;
    this.#values = new Exchange(peers.length);
  }

  get size(): number {
    return this.#peers.length;
  }

  /** Whether all members share memory for gathered parameters. */
  get sharesMemory(): boolean {
    return this.#memories.length === 1;
  }

  /** The ranks of the world that share memory with this member, itself included; in order. */
  get neighbours(): readonly number[] {
    const own = this.#ranks[this.rank] as number;
    return this.#memories.find((ranks) => ranks.includes(own)) as readonly number[];
  }

  async barrier(key: string): Promise<void> {
    await this.#exchange(key, () => null);
  }

  async allGather(key: string, value: Tensor): Promise<Tensor[]> {
    return (await this.#exchange(key, () => value)) as Tensor[];
  }

  async gather(key: string, gathered: Gathered | undefined): Promise<void> {
    if (gathered === undefined) return this.barrier(key);
    // The first of each memory writes there for all.
    const first = this.#memories.filter((ranks) => ranks !== this.neighbours).map(([rank]) => rank);
    const { own, others } = gathered;
    await this.#copyAll(key, others, (member) => (first.includes(this.#ranks[member]) ? own : null));
    if (this.#memories.length < this.size) await this.barrier(`${key} written`);
  }

  async reduceScatter(
    key: string,
    input: Tensor,
    ranges: readonly MemberRange[],
    output: () => Summed,
  ): Promise<void> {
    const parts = await this.#parts(key, input, ranges);
    const begin = this.sharesMemory ? (ranges[this.rank]?.begin ?? 0) : 0;
    const { sum, squares } = output();
    ops.troupe.reduceRanks_(sum, parts, begin, squares);
    for (const part of parts) part.dispose();
  }

  async allReduce(
    key: string,
    input: Tensor,
    ranges: readonly MemberRange[],
    output: () => Tensor,
  ): Promise<void> {
    const parts = await this.#parts(key, input, ranges);
    const sum = output();
    const slices = this.sharesMemory ? [] : slicesOf(sum, ranges);
    ops.troupe.reduceRanks_(slices[this.rank] ?? sum, parts, 0);
    for (const part of parts) part.dispose();
    if (this.sharesMemory) return;
    await this.#spread(`${key} sums`, slices);
    for (const slice of slices) slice.dispose();
  }

  /** Gives the others their slices of `full` to write, and all of it to read. The first member calls it for shared memory. */
  give(layout: FlatBlock, full: Tensor): void {
    const others = this.#others();
    // Slices are cut before the buffer is shared for reading: they stay writable.
    const slices = others.map(({ peer, member }) =>
      moveRef(sliceFor(layout, full, this.#ranks[member] as number), nearTo(peer)),
    );
    others.forEach(({ peer }, index) => {
      peer.tell("own", {
        group: this.name,
        block: layout.name,
        full: shareRef(full, nearTo(peer)),
        slice: slices[index] as TensorRef,
      });
    });
  }

  /** The memory that the first member gave for a block; the caller's to dispose. */
  async given(block: string): Promise<SharedBlock> {
    const [given] = (await this.#given.all(block)) as [{ full: TensorRef; slice: TensorRef }];
    return { full: hold(() => attach(given.full)), slice: hold(() => attach(given.slice)) };
  }

  contributed({ key, member, value }: ShardGroupProtocol["contribute"]["in"]): void {
    if (value === null) {
      this.#values.contribute(key, member, null);
      return;
    }
    const { work, open } = this.#carrier.take(value, this.#ranks[member] as number);
    const contribute = () => this.#values.contribute(key, member, hold(open));
    if (work.done) contribute();
    else work.ended().then(contribute, (error: Error) => this.#values.abort(error));
  }

  owned({ block, full, slice }: ShardGroupProtocol["own"]["in"]): void {
    this.#given.contribute(block, 0, { full, slice });
  }

  /** A member has ended, and nothing may wait for it for ever. @returns the error that every waiter gets */
  abort(down: Down): TroupeError {
    const reason = new TroupeError("COLLECTIVE_ABORTED", {
      where: `group ${this.name}`,
      expected: "every rank of the group to live",
      got: `the end of ${down.actor}`,
      hint: "see its own failure",
      fields: { actor: down.actor, reason: down.reason, waitedFor: this.#values.pending() },
    });
    this.#values.abort(reason);
    this.#given.abort(reason);
    return reason;
  }

  /** Sends each member its value, and returns theirs. */
  #exchange(key: string, valueFor: (member: number) => Tensor | null): Promise<(Tensor | null)[]> {
    const all = this.#peers.map((_, member) => member);
    return this.#trade(key, { to: all, from: all }, valueFor);
  }

  /** Sends values to the members of `to` and returns those of `from`; null for all others. */
  #trade(
    key: string,
    { to, from }: { readonly to: readonly number[]; readonly from: readonly number[] },
    valueFor: (member: number) => Tensor | null,
  ): Promise<(Tensor | null)[]> {
    for (const { peer, member } of this.#others()) {
      if (!from.includes(member)) this.#values.contribute(key, member, null);
      if (!to.includes(member)) continue;
      const value = valueFor(member);
      const recipient = { rank: this.#ranks[member] as number, ...sentTo(peer) };
      const sent = value === null ? null : this.#carrier.share(value, recipient);
      peer.tell("contribute", { group: this.name, key, member: this.rank, value: sent });
    }
    this.#values.contribute(key, this.rank, valueFor(this.rank));
    return this.#values.all(key);
  }

  /** Sends each member its value, and copies the others' to their destination. */
  async #copyAll(
    key: string,
    into: readonly (Tensor | undefined)[],
    valueFor: (member: number) => Tensor | null,
  ): Promise<void> {
    const values = await this.#exchange(key, valueFor);
    values.forEach((value, member) => {
      if (member === this.rank || value === null) return;
      scope(() => into[member]?.copy_(value));
      value.dispose();
    });
  }

  /** The tensors that this member sums: complete inputs within one memory, else parts in its range. Takes `input`. */
  async #parts(key: string, input: Tensor, ranges: readonly MemberRange[]): Promise<Tensor[]> {
    if (this.sharesMemory) return this.allGather(key, input);
    if (this.#reduction === "hierarchical") return this.#partialSums(key, input, ranges);
    const slices = slicesOf(input, ranges);
    input.dispose();
    const parts = (await this.#exchange(key, (member) => slices[member] as Tensor)) as Tensor[];
    for (const slice of slices) if (slice !== parts[this.rank]) slice.dispose();
    return parts;
  }

  /**
   * The sum of each memory's inputs over this member's range, in the order of the memories. Members that share memory read each
   * other's inputs, and each sums for one member of every other memory.
   */
  async #partialSums(key: string, input: Tensor, ranges: readonly MemberRange[]): Promise<Tensor[]> {
    const { mates, served, servers, sources } = this.#table;
    const near = { to: mates, from: mates };
    const inputs = (await this.#trade(`${key} near`, near, () => input)).filter((value) => value !== null);
    const sums = new Map(
      [...served, this.rank].map((member) => {
        const { begin, end } = ranges[member] as MemberRange;
        const sum = hold(() => empty([end - begin], { dtype: "float32" }));
        ops.troupe.reduceRanks_(sum, inputs, begin);
        return [member, sum];
      }),
    );
    for (const value of inputs) value.dispose();
    const far = { to: served, from: servers };
    const parts = await this.#trade(key, far, (member) => sums.get(member) as Tensor);
    for (const member of served) sums.get(member)?.dispose();
    return sources.map((member) => parts[member] as Tensor);
  }

  /** Gives all members each other's slices: to one member of every other memory, and from that one to its neighbours. */
  async #spread(key: string, slices: readonly Tensor[]): Promise<void> {
    const { mates, served, servers, servedBy } = this.#table;
    const own = slices[this.rank] as Tensor;
    const come = await this.#trade(key, { to: servers, from: served }, () => own);
    for (const member of served) {
      scope(() => slices[member]?.copy_(come[member] as Tensor));
      come[member]?.dispose();
    }
    if (mates.length === 1) return;
    const held = (mate: number) => [mate, ...servedBy(mate)];
    const numel = held(this.rank).reduce((sum, member) => sum + (slices[member]?.numel ?? 0), 0);
    const column = hold(() => emptyShared([numel], { dtype: "float32" }));
    eachOf(column, slices, held(this.rank), (part, slice) => part.copy_(slice));
    const columns = await this.#trade(`${key} near`, { to: mates, from: mates }, () => column);
    for (const mate of mates) {
      if (mate === this.rank) continue;
      const theirs = columns[mate] as Tensor;
      eachOf(theirs, slices, held(mate), (part, slice) => slice.copy_(part));
      theirs.dispose();
    }
    column.dispose();
  }

  /** Pairs the members of different memories: the n-th with the n-th, and around again where there are fewer. */
  get #table() {
    const memories = this.#memories.map((ranks) => ranks.map((rank) => this.#ranks.indexOf(rank)));
    const mates = memories.find((members) => members.includes(this.rank)) as readonly number[];
    const others = memories.filter((members) => members !== mates);
    const servedBy = (mate: number) =>
      others.flatMap((members) => members.filter((_, index) => mates[index % mates.length] === mate));
    const place = mates.indexOf(this.rank);
    const serverIn = (members: readonly number[]) => members[place % members.length] as number;
    return {
      /** Members that share this member's memory, itself included. */
      mates,
      /** @returns the members of other memories whose slices a mate sums for its memory and receives for it */
      servedBy,
      served: servedBy(this.rank),
      /** The mates' counterpart of this member in each other memory. */
      servers: others.map(serverIn),
      /** The servers and this member, in the order of the memories. */
      sources: memories.map((members) => (members === mates ? this.rank : serverIn(members))),
    };
  }

  #others() {
    return this.#peers.flatMap((peer, member) => (member === this.rank ? [] : { peer, member }));
  }
}

/** @returns the name of the group of these ranks of the world, in order */
export function groupName(ranks: readonly number[]): string {
  return ranks.join(" ");
}

/** Ref options for a peer that shares this process's memory. */
const nearTo = (peer: Addressed): RefOptions => ({ ...sentTo(peer), isNear: true });

/** Calls `each` with every part of a tensor that holds the members' slices one after the other, and with that slice. */
function eachOf(
  all: Tensor,
  slices: readonly Tensor[],
  members: readonly number[],
  visit: (part: Tensor, slice: Tensor) => void,
): void {
  let begin = 0;
  for (const member of members) {
    const slice = slices[member] as Tensor;
    const { numel } = slice;
    scope(() => visit(all.narrow(0, begin, numel), slice));
    begin += numel;
  }
}

/** Views of a flat tensor; the caller's. */
function slicesOf(tensor: Tensor, ranges: readonly MemberRange[]): Tensor[] {
  return ranges.map(({ begin, end }) => hold(() => tensor.narrow(0, begin, end - begin)));
}

/** @returns the range of a block's gathered parameters that `rank` owns, a view */
export function sliceFor(layout: FlatBlock, full: Tensor, rank: number): Tensor {
  const { begin, end } = ownedRange(layout, rank);
  return hold(() => full.narrow(0, begin, end - begin));
}
