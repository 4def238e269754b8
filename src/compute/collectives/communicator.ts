import { adoptList, liveHandle, native, type Tensor } from "../tensor/index.ts";
import { type ReduceOp, reductionCode } from "./reduce-op.ts";
import { finished, PendingWork, type Work } from "./work.ts";

/** What carries the bytes: the memory of one process, Gloo between threads and processes, NCCL between GPUs. */
export type Backend = "local" | "gloo" | "nccl";

/** `Kind` of `native/comm/operation.h`. */
const kinds = {
  allReduce: 0,
  allGather: 1,
  reduceScatter: 2,
  broadcast: 3,
  reduce: 4,
  allToAll: 5,
  barrier: 6,
  send: 7,
  recv: 8,
} as const;

/** No splits: dim 0 is cut evenly. */
const even: readonly number[] = [];

/** Who is in a group, and how they meet. */
export interface CommunicatorOptions {
  readonly backend: Backend;
  /** The group's name; its members find each other by it. A group that is built anew takes a new name. */
  readonly name: string;
  /** This member's place, from 0 on. */
  readonly rank: number;
  /** How many members the group has. */
  readonly size: number;
  /**
   * Where members in other processes meet: the path of a file that all can write (new for each group), or `host:port`,
   * where rank 0 listens. Left out, the group lives within one process. `local` takes none.
   */
  readonly rendezvous?: string;
  /** How long a wait may last before it throws `COLLECTIVE_TIMEOUT`. */
  readonly deadlineMs: number;
  /** Artificial: how long each operation takes at least, one after the other. 0 by default; shows what overlaps. */
  readonly delayMs?: number;
  /**
   * Of `nccl`: whether the ranks compare what they are about to do before each operation, and wait for it in their threads. Without it
   * ranks that do different things are told when they are late. False by default: a check costs a message to each rank.
   */
  readonly checked?: boolean;
  /**
   * Of `nccl`: "ordered" adds in rank order, to the bits of the other backends; "direct" has NCCL add, in an order that the devices'
   * connections decide, with fewer bytes. "ordered" by default.
   */
  readonly reduction?: "ordered" | "direct";
  /**
   * Where this membership tells which operation it has come to and whether it waits, in memory that others read: 80 bytes,
   * aligned to 8, as `CollectiveLine` of the runtime reads them. `group` names it there.
   */
  readonly status?: { readonly memory: Uint8Array; readonly group: string };
}

/**
 * One rank's membership in a group: used by one thread, blocking it in native code. Operations start in the order in
 * which they are issued, which must be the same on every rank; each is a numbered place in the program, and where the
 * ranks disagree about what happens there, all of them get `COLLECTIVE_MISMATCH` naming what each one called. A group
 * that has failed stays failed: every operation throws the first failure again.
 *
 * Tensors may have any strides. Meta tensors take part in nothing: an operation on them is complete at once.
 */
export class Communicator implements Disposable {
  readonly backend: Backend;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /** The native number of this membership, for operators that take one; it names nothing after {@link close}. */
  readonly number: number;

  /** For {@link openCommunicator}. */
  constructor(number: number, options: CommunicatorOptions) {
    this.number = number;
    this.backend = options.backend;
    this.name = options.name;
    this.rank = options.rank;
    this.size = options.size;
  }

  /** Every rank's `tensor` becomes the reduction of all of them. Same shape and dtype on every rank. */
  allReduce(tensor: Tensor, op: ReduceOp = "sum"): Work {
    return this.#issue("allReduce", tensor, tensor, reductionCode(op));
  }

  /** Joins the ranks' inputs along dim 0, in rank order, on every rank. Dim 0 of `output` is `size` times that of `input`. */
  allGather(output: Tensor, input: Tensor): Work {
    return this.#issue("allGather", output, input);
  }

  /** Reduces all inputs and leaves on each rank its share of dim 0, in rank order. Dim 0 of `input` is `size` times that of `output`. */
  reduceScatter(output: Tensor, input: Tensor, op: ReduceOp = "sum"): Work {
    return this.#issue("reduceScatter", output, input, reductionCode(op));
  }

  /** Every rank's `tensor` becomes that of `root`. */
  broadcast(tensor: Tensor, root: number): Work {
    return this.#issue("broadcast", tensor, tensor, 0, root);
  }

  /** The `tensor` of `root` becomes the reduction of all ranks' tensors; the others keep theirs. */
  reduce(tensor: Tensor, root: number, op: ReduceOp = "sum"): Work {
    return this.#issue("reduce", tensor, tensor, reductionCode(op), root);
  }

  /**
   * All ranks' inputs, in rank order, on every rank; their first dims may differ, the others must not. Blocks until they
   * are there. The tensors are views of one new tensor.
   */
  gatherRagged(input: Tensor): Tensor[] {
    return adoptList(native().gatherRagged(this.number, liveHandle(input, "gatherRagged")));
  }

  /**
   * Sends rows of dim 0 of `input` to each rank and takes rows of `output` from each, in rank order: `inputSplits[r]`
   * rows go to rank r, `outputSplits[r]` come from it. Left out, each dim 0 is cut evenly. The two must not overlap.
   */
  allToAll(
    output: Tensor,
    input: Tensor,
    outputSplits: readonly number[] = even,
    inputSplits: readonly number[] = even,
  ): Work {
    return this.#issue("allToAll", output, input, 0, 0, outputSplits, inputSplits);
  }

  /**
   * Gives `tensor` to the matching {@link recv} of rank `to`; complete when it was taken. Sends and receives between two
   * ranks are numbered apart from the collectives, so either may come first; issue both before waiting for one.
   */
  send(tensor: Tensor, to: number): Work {
    return this.#issue("send", tensor, tensor, 0, to);
  }

  /** Overwrites `tensor` by what rank `from` sends: same shape and dtype. */
  recv(tensor: Tensor, from: number): Work {
    return this.#issue("recv", tensor, tensor, 0, from);
  }

  /** Blocks until every rank has come here. */
  barrier(): void {
    workOf(native().issueCollective(this.number, kinds.barrier, 0, 0, 0, 0, even, even)).wait();
  }

  /**
   * Ends the group for every rank, from this one: whoever waits or comes later gets `COLLECTIVE_ABORTED` with `reason`.
   * From another thread, or without a membership: {@link abortGroup}.
   */
  abort(reason: string): void {
    native().abortCommunicator(this.number, reason);
  }

  /** Leaves the group. Ranks that still need this one get `COLLECTIVE_ABORTED`. Idempotent; the end of the thread does it too. */
  close(): void {
    native().closeCommunicator(this.number);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #issue(
    kind: Exclude<keyof typeof kinds, "barrier">,
    output: Tensor,
    input: Tensor,
    reduction = 0,
    peer = 0,
    outputSplits: readonly number[] = even,
    inputSplits: readonly number[] = even,
  ): Work {
    return workOf(
      native().issueCollective(
        this.number,
        kinds[kind],
        liveHandle(output, kind),
        liveHandle(input, kind),
        reduction,
        peer,
        outputSplits,
        inputSplits,
      ),
    );
  }
}

/**
 * Joins a group. `local` and threads of one process need no rendezvous; a member that never comes is found missing by the
 * first operation, or by this call where processes must connect.
 * @throws {TroupeError} `COLLECTIVE_ARGUMENT` on options out of range or contradicting the other members',
 *   `GLOO_UNAVAILABLE` and `NCCL_UNAVAILABLE` where the addon lacks the backend, `COLLECTIVE_TIMEOUT` when the others do
 *   not connect within the deadline
 */
export function openCommunicator(options: CommunicatorOptions): Communicator {
  const { backend, name, rank, size, rendezvous = "", deadlineMs, delayMs = 0, status } = options;
  const { checked = false, reduction = "ordered" } = options;
  return new Communicator(
    native().openCommunicator(
      backend,
      name,
      rank,
      size,
      rendezvous,
      deadlineMs,
      delayMs,
      status?.memory,
      status?.group ?? "",
      checked,
      reduction === "direct",
    ),
    options,
  );
}

/**
 * Ends every group of this name for its members in this process, from any thread: to be called by whoever learns that a
 * member has died. @returns how many memberships were ended
 */
export function abortGroup(name: string, reason: string): number {
  return native().abortGroup(name, reason);
}

function workOf(number: number): Work {
  return number === 0 ? finished : new PendingWork(number);
}
