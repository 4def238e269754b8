import {
  attach,
  type Device,
  type DType,
  empty,
  hold,
  moveRef,
  type RefOptions,
  shareRef,
  type Tensor,
  type TensorRef,
} from "../tensor/index.ts";
import { type Communicator, openCommunicator } from "./communicator.ts";
import { finished, type Work } from "./work.ts";

/** A tensor whose bytes follow a message over a group, in the order in which the messages between two members come. Plain data. */
export interface Parcel {
  readonly kind: "parcel";
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Whether its sender has it in the host's memory, and so its receiver. */
  readonly isOfHost: boolean;
}

/** What a message holds in a tensor's place. */
export type Carried = TensorRef | Parcel;

/** To whom a tensor goes. */
export interface Recipient extends RefOptions {
  /** Of the world. */
  readonly rank: number;
}

/** A tensor that a message has announced. */
export interface Incoming {
  /** Complete once its bytes are there. */
  readonly work: Work;
  /** The tensor, in the running scope, once {@link work} is complete; asked for once. */
  readonly open: () => Tensor;
}

/**
 * How tensors get from one member of a group to another: beside messages, which say what comes and where it belongs. Who takes
 * part in them sees to it that every message is taken in the order in which it came from its sender. Members are named by their
 * ranks of the world.
 */
export interface Carrier extends Disposable {
  /** @returns `ranks` by the memory they have: those of one read what the others of it write, without being sent it; in order */
  memories(ranks: readonly number[]): readonly (readonly number[])[];
  /** @returns what to send in the tensor's place; the tensor stays the caller's, and as it is until it has been taken */
  share(tensor: Tensor, to: Recipient): Carried;
  /** The same, and ownership passes. */
  move(tensor: Tensor, to: Recipient): Carried;
  /** Takes in what a message of rank `from` holds, in the thread and the turn in which the message came. */
  take(carried: Carried, from: number): Incoming;
  /** Whatever is under way, now or later, fails with `COLLECTIVE_ABORTED` and this reason. */
  abort(reason: string): void;
}

/** Within one process, or on one host by shared segments: refs in messages, bytes stay where they are. */
export const ALIAS: Carrier = {
  memories: (ranks) => [ranks],
  share: (tensor, to) => shareRef(tensor, to),
  move: (tensor, to) => moveRef(tensor, to),
  take: (carried) => ({ work: finished, open: () => attach(carried as TensorRef) }),
  abort() {},
  [Symbol.dispose]() {},
};

/**
 * Within one process, between several devices: refs in messages, and a device copies what another has, in the order of their
 * streams. On one device bytes stay where they are, and the host's do everywhere.
 */
export class PeerCarrier implements Carrier {
  readonly #devices: readonly Device[];
  readonly #own: Device;

  /**
   * @param devices - by rank of the world, what it computes on
   * @param rank - this one, of the world
   */
  constructor(devices: readonly Device[], rank: number) {
    this.#devices = devices;
    this.#own = devices[rank] as Device;
  }

  memories(ranks: readonly number[]): readonly (readonly number[])[] {
    return [...Map.groupBy(ranks, (rank) => this.#devices[rank]).values()];
  }

  share(tensor: Tensor, to: Recipient): TensorRef {
    return shareRef(tensor, to);
  }

  move(tensor: Tensor, to: Recipient): TensorRef {
    return moveRef(tensor, to);
  }

  take(carried: Carried): Incoming {
    return { work: finished, open: () => this.#here(carried as TensorRef) };
  }

  abort(): void {}

  [Symbol.dispose](): void {}

  #here(ref: TensorRef): Tensor {
    const there = attach(ref);
    if (there.device === "cpu" || there.device === this.#own) return there;
    const here = there.onto(this.#own);
    there.dispose();
    return here;
  }
}

/**
 * Between the ranks of several hosts: those of one host share its memory, as {@link ALIAS}, and only what goes to another
 * host goes over Gloo.
 */
export class HostCarrier implements Carrier {
  readonly #hosts: readonly number[];
  readonly #own: number;
  readonly #between: Carrier;

  /**
   * @param hosts - by rank of the world, where it lives
   * @param rank - this one, of the world
   * @param between - carries what leaves a host; it passes
   */
  constructor(hosts: readonly number[], rank: number, between: Carrier) {
    this.#hosts = hosts;
    this.#own = hosts[rank] as number;
    this.#between = between;
  }

  memories(ranks: readonly number[]): readonly (readonly number[])[] {
    return [...Map.groupBy(ranks, (rank) => this.#hosts[rank]).values()];
  }

  share(tensor: Tensor, to: Recipient): Carried {
    return this.#isHere(to) ? ALIAS.share(tensor, { ...to, isNear: true }) : this.#between.share(tensor, to);
  }

  move(tensor: Tensor, to: Recipient): Carried {
    return this.#isHere(to) ? ALIAS.move(tensor, { ...to, isNear: true }) : this.#between.move(tensor, to);
  }

  take(carried: Carried, from: number): Incoming {
    return carried.kind === "parcel" ? this.#between.take(carried, from) : ALIAS.take(carried, from);
  }

  abort(reason: string): void {
    this.#between.abort(reason);
  }

  [Symbol.dispose](): void {
    this.#between[Symbol.dispose]();
  }

  #isHere({ rank }: Recipient): boolean {
    return this.#hosts[rank] === this.#own;
  }
}

/** Who is in a group whose bytes are sent, and how they meet. */
export interface Membership {
  readonly backend: "gloo" | "nccl";
  readonly name: string;
  /** This member, and all of them in order: of the world. */
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly rendezvous: string;
  readonly deadlineMs: number;
}

/**
 * Between processes that share no memory: the bytes are sent, by threads of the group, while event loops go on. Over Gloo from host to
 * host; by NCCL from device to device, and what is in the host's memory over Gloo beside it.
 */
export class SendingCarrier implements Carrier {
  readonly #group: Communicator;
  /** By rank of the world, its place in the group. */
  readonly #places: ReadonlyMap<number, number>;

  /**
   * Joins the group; blocks until all members have.
   * @throws {TroupeError} what `openCommunicator` throws
   */
  constructor({ rank, ranks, ...membership }: Membership) {
    this.#places = new Map(ranks.map((member, place) => [member, place]));
    this.#group = openCommunicator({ ...membership, rank: this.#placeOf(rank), size: ranks.length });
  }

  memories(ranks: readonly number[]): readonly (readonly number[])[] {
    return ranks.map((rank) => [rank]);
  }

  share(tensor: Tensor, to: Recipient): Parcel {
    // What goes wrong the group has failed with: whoever takes next is told.
    this.#group
      .send(tensor, this.#placeOf(to.rank))
      .ended()
      .catch(() => {});
    return { kind: "parcel", dtype: tensor.dtype, shape: tensor.shape, isOfHost: tensor.device === "cpu" };
  }

  move(tensor: Tensor, to: Recipient): Parcel {
    const parcel = this.share(tensor, to);
    tensor.dispose();
    return parcel;
  }

  take(carried: Carried, from: number): Incoming {
    const { dtype, shape, isOfHost } = carried as Parcel;
    const tensor = hold(() => empty(shape, isOfHost ? { dtype, device: "cpu" } : { dtype }));
    const work = this.#group.recv(tensor, this.#placeOf(from));
    return {
      work,
      open() {
        // Who has seen that it is done has not waited: on a device the result is not where it belongs before.
        work.wait();
        const opened = tensor.alias();
        tensor.dispose();
        return opened;
      },
    };
  }

  abort(reason: string): void {
    this.#group.abort(reason);
  }

  [Symbol.dispose](): void {
    this.#group.close();
  }

  #placeOf(rank: number): number {
    return this.#places.get(rank) as number;
  }
}
