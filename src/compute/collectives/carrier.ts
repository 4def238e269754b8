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
import { openCommunicator } from "./communicator.ts";
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
 * @param devices - the device of each rank of the world
 * @param rank - this rank in the world
 */
export function peerCarrier(devices: readonly Device[], rank: number): Carrier {
  const open = (ref: TensorRef) => {
    const there = attach(ref);
    if (there.device === "cpu" || there.device === devices[rank]) return there;
    const here = there.onto(devices[rank] as Device);
    there.dispose();
    return here;
  };
  return {
    ...ALIAS,
    memories: (ranks) => [...Map.groupBy(ranks, (each) => devices[each]).values()],
    take: (carried) => ({ work: finished, open: () => open(carried as TensorRef) }),
  };
}

/**
 * Carries tensors between the ranks of several hosts: ranks of one host share its memory, as with {@link ALIAS}, and only
 * tensors for another host are sent, over Gloo.
 * @param hosts - the host of each rank of the world
 * @param rank - this rank in the world
 * @param between - carries tensors between hosts; ownership passes
 */
export function hostCarrier(hosts: readonly number[], rank: number, between: Carrier): Carrier {
  const isHere = (to: Recipient) => hosts[to.rank] === hosts[rank];
  return {
    memories: (ranks) => [...Map.groupBy(ranks, (each) => hosts[each]).values()],
    share: (tensor, to) =>
      isHere(to) ? ALIAS.share(tensor, { ...to, isNear: true }) : between.share(tensor, to),
    move: (tensor, to) =>
      isHere(to) ? ALIAS.move(tensor, { ...to, isNear: true }) : between.move(tensor, to),
    take: (carried, from) => (carried.kind === "sent-tensor" ? between : ALIAS).take(carried, from),
    abort: (reason) => between.abort(reason),
    [Symbol.dispose]: () => between[Symbol.dispose](),
  };
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
 * carries host memory; NCCL carries device memory. Joins the group; blocks until all members have.
 * @throws {TroupeError} as `openCommunicator`
 */
export function sendingCarrier({ rank, ranks, ...membership }: Membership): Carrier {
  const places = new Map(ranks.map((member, place) => [member, place]));
  const placeOf = (member: number) => places.get(member) as number;
  const group = openCommunicator({ ...membership, rank: placeOf(rank), size: ranks.length });
  const share = (tensor: Tensor, to: Recipient): SentTensor => {
    // An error fails the group, so that the next `take` throws it.
    const sent = group.send(tensor, placeOf(to.rank));
    sent.ended().catch(() => {});
    const { dtype, shape, device } = tensor;
    return { kind: "sent-tensor", dtype, shape, isOnHost: device === "cpu" };
  };
  return {
    memories: (all) => all.map((each) => [each]),
    share,
    move(tensor, to) {
      const sent = share(tensor, to);
      tensor.dispose();
      return sent;
    },
    take(carried, from) {
      const { dtype, shape, isOnHost } = carried as SentTensor;
      const tensor = hold(() => empty(shape, isOnHost ? { dtype, device: "cpu" } : { dtype }));
      const work = group.recv(tensor, placeOf(from));
      const open = () => {
        // Completion seen on the host is not enough: make the device's stream wait too.
        work.wait();
        const opened = tensor.alias();
        tensor.dispose();
        return opened;
      };
      return { work, open };
    },
    abort: (reason) => group.abort(reason),
    [Symbol.dispose]: () => group.close(),
  };
}
