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

/**
 * Announces in a message a tensor whose bytes follow over a group, in the order of the messages between the two members.
 * Plain data.
 */
export interface SentTensor {
  readonly kind: "sent-tensor";
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Whether it is in host memory, at the sender and then at the receiver. */
  readonly isOnHost: boolean;
}

/** The stand-in for a tensor in a message. */
export type Carried = TensorRef | SentTensor;

/** The receiver of a tensor. */
export interface Recipient extends RefOptions {
  /** Rank in the world. */
  readonly rank: number;
}

/** A tensor that is about to arrive. */
export interface Incoming {
  /** Completes when its bytes have arrived. */
  readonly work: Work;
  /** Returns the tensor, which belongs to the running scope. Call it once, when {@link work} is complete. */
  readonly open: () => Tensor;
}

/**
 * Carries tensors from one member of a group to another. Messages announce them; the bytes travel separately. The receiver
 * must take each sender's messages in the order in which they arrived. Members are named by their ranks in the world.
 */
export interface Carrier extends Disposable {
  /** Groups `ranks` by shared memory, in order: members of one group read what the others write, without a transfer. */
  memories(ranks: readonly number[]): readonly (readonly number[])[];
  /**
   * Shares a tensor; returns its stand-in for the message. The caller keeps the tensor and must not change it until it has
   * been taken.
   */
  share(tensor: Tensor, to: Recipient): Carried;
  /** Moves a tensor, with its ownership; returns its stand-in for the message. */
  move(tensor: Tensor, to: Recipient): Carried;
  /**
   * Receives a tensor from the stand-in in a message of rank `from`. Call it in the thread and the turn in which the message
   * arrived.
   */
  take(carried: Carried, from: number): Incoming;
  /** Fails every present and later transfer with `COLLECTIVE_ABORTED` and this reason. */
  abort(reason: string): void;
}

/** Carries tensors within one process, or on one host by shared segments: messages hold refs, bytes stay where they are. */
export const ALIAS: Carrier = {
  memories: (ranks) => [ranks],
  share: (tensor, to) => shareRef(tensor, to),
  move: (tensor, to) => moveRef(tensor, to),
  take: (carried) => ({ work: finished, open: () => attach(carried as TensorRef) }),
  abort() {},
  [Symbol.dispose]() {},
};

/**
 * Carries tensors between several devices of one process: messages hold refs, and a device copies tensors of another, in the
 * order of their streams. Tensors of the same device and of the host are not copied.
 */
export class PeerCarrier implements Carrier {
  readonly #devices: readonly Device[];
  readonly #own: Device;

  /**
   * @param devices - the device of each rank of the world
   * @param rank - this rank in the world
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
 * Carries tensors between the ranks of several hosts: ranks of one host share its memory, as with {@link ALIAS}, and only
 * tensors for another host are sent, over Gloo.
 */
export class HostCarrier implements Carrier {
  readonly #hosts: readonly number[];
  readonly #own: number;
  readonly #between: Carrier;

  /**
   * @param hosts - the host of each rank of the world
   * @param rank - this rank in the world
   * @param between - carries tensors between hosts; ownership passes
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
    return carried.kind === "sent-tensor" ? this.#between.take(carried, from) : ALIAS.take(carried, from);
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

/** The members of a group that sends bytes, and how they find each other. */
export interface Membership {
  readonly backend: "gloo" | "nccl";
  readonly name: string;
  /** This member and all members in order, as ranks in the world. */
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly rendezvous: string;
  readonly deadlineMs: number;
}

/**
 * Carries tensors between processes that share no memory: threads of the group send the bytes while event loops go on. Gloo
 * carries host memory; NCCL carries device memory.
 */
export class SendingCarrier implements Carrier {
  readonly #group: Communicator;
  /** Place in the group of each rank of the world. */
  readonly #places: ReadonlyMap<number, number>;

  /**
   * Joins the group; blocks until all members have.
   * @throws {TroupeError} as `openCommunicator`
   */
  constructor({ rank, ranks, ...membership }: Membership) {
    this.#places = new Map(ranks.map((member, place) => [member, place]));
    this.#group = openCommunicator({ ...membership, rank: this.#placeOf(rank), size: ranks.length });
  }

  memories(ranks: readonly number[]): readonly (readonly number[])[] {
    return ranks.map((rank) => [rank]);
  }

  share(tensor: Tensor, to: Recipient): SentTensor {
    // An error fails the group, so that the next `take` throws it.
    this.#group
      .send(tensor, this.#placeOf(to.rank))
      .ended()
      .catch(() => {});
    return {
      kind: "sent-tensor",
      dtype: tensor.dtype,
      shape: tensor.shape,
      isOnHost: tensor.device === "cpu",
    };
  }

  move(tensor: Tensor, to: Recipient): SentTensor {
    const sent = this.share(tensor, to);
    tensor.dispose();
    return sent;
  }

  take(carried: Carried, from: number): Incoming {
    const { dtype, shape, isOnHost } = carried as SentTensor;
    const tensor = hold(() => empty(shape, isOnHost ? { dtype, device: "cpu" } : { dtype }));
    const work = this.#group.recv(tensor, this.#placeOf(from));
    return {
      work,
      open() {
        // Completion seen on the host is not enough: make the device's stream wait too.
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
