import { adoptList, liveHandle, native, type Tensor } from "../tensor/index.ts";
import { type ReduceOp, reductionCode } from "./reduce-op.ts";
import { finished, PendingWork, type Work } from "./work.ts";

/** The transport of a group: "local" is the memory of one process, "gloo" connects threads and processes, "nccl" GPUs. */
export type Backend = "local" | "gloo" | "nccl";

/** `Kind` of `native/comm/operation.h`. */
// biome-ignore format: a list
const kinds = {
  allReduce: 0, allGather: 1, reduceScatter: 2, broadcast: 3, reduce: 4, allToAll: 5, barrier: 6, send: 7,
  recv: 8,
} as const;

/** No splits: dim 0 is cut evenly. */
const even: readonly number[] = [];

/** One member's options for joining a group. */
export interface CommunicatorOptions {
  readonly backend: Backend;
  /** Name of the group, by which its members find each other. A group that is built again takes a new name. */
  readonly name: string;
  /** Rank of this member in the group, from 0. */
  readonly rank: number;
  /** Number of members. */
  readonly size: number;
  /**
   * Where members of other processes find each other: the path of a file that all can write (a new one for each group), or
   * `host:port`, where rank 0 listens. Leave it out for a group within one process; `local` takes none.
   */
  readonly rendezvous?: string;
  /** Time after which a wait throws `COLLECTIVE_TIMEOUT`, in ms. */
  readonly deadlineMs: number;
  /** Artificial minimum duration of each operation, in ms, one after the other; shows what overlaps. Default: 0. */
  readonly delayMs?: number;
  /**
   * For `nccl`: whether the ranks compare their operations before each one, and wait for that in their threads. Otherwise
   * ranks that issue different operations notice it only at the deadline. Default: false, because a check costs a message
   * to each rank.
   */
  readonly checked?: boolean;
  /**
   * For `nccl`: "ordered" adds in rank order and gives the same bits as the other backends; "direct" lets NCCL add in an
   * order that depends on the devices' connections, and sends fewer bytes. Default: ordered.
   */
  readonly reduction?: "ordered" | "direct";
  /**
   * Shared memory to which this member writes its current operation and whether it waits: 80 bytes, aligned to 8, as the
   * runtime's `CollectiveLine` reads them. `group` is the name written there.
   */
  readonly status?: { readonly memory: Uint8Array; readonly group: string };
  /** Called now and then while it waits for members of other processes to join; what it throws ends the wait. */
  readonly look?: () => void;
}

/**
 * One rank's membership in a group. One thread uses it, and waits block that thread in native code. Operations start in the
 * order in which they are issued, which must be the same on every rank. Operations are numbered; if the ranks disagree about
 * one, all of them get `COLLECTIVE_MISMATCH` naming what each rank called. A failed group stays failed: every operation
 * throws the first failure again.
 *
 * Tensors may have any strides. An operation on meta tensors communicates nothing and is complete at once.
 */
export class Communicator implements Disposable {
  readonly backend: Backend;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /** The native number of this membership, for operators that take one; invalid after {@link close}. */
  readonly number: number;

  /** For {@link openCommunicator}. */
  constructor(number: number, options: CommunicatorOptions) {
    this.number = number;
    this.backend = options.backend;
    this.name = options.name;
    this.rank = options.rank;
    this.size = options.size;
  }

  /** Replaces every rank's `tensor` by the reduction of all of them. Same shape and dtype on every rank. */
  allReduce(tensor: Tensor, op: ReduceOp = "sum"): Work {
    return this.#issue("allReduce", tensor, tensor, reductionCode(op));
  }

  /**
   * Concatenates the ranks' inputs along dim 0, in rank order, on every rank. Dim 0 of `output` is `size` times that of `input`.
   */
  allGather(output: Tensor, input: Tensor): Work {
    return this.#issue("allGather", output, input);
  }

  /**
   * Reduces all inputs and gives each rank its share of dim 0, in rank order. Dim 0 of `input` is `size` times that of `output`.
   */
  reduceScatter(output: Tensor, input: Tensor, op: ReduceOp = "sum"): Work {
    return this.#issue("reduceScatter", output, input, reductionCode(op));
  }

  /** Replaces every rank's `tensor` by that of `root`. */
  broadcast(tensor: Tensor, root: number): Work {
    return this.#issue("broadcast", tensor, tensor, 0, root);
  }

  /** Replaces the `tensor` of `root` by the reduction of all ranks' tensors; the others keep theirs. */
  reduce(tensor: Tensor, root: number, op: ReduceOp = "sum"): Work {
    return this.#issue("reduce", tensor, tensor, reductionCode(op), root);
  }

  /**
   * Returns all ranks' inputs, in rank order, on every rank. Their first dims may differ, the others must not. Blocks until
   * they are there. The results are views of one new tensor.
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
   * Sends `tensor` to the matching {@link recv} of rank `to`; complete when that has taken it. Sends and receives between two
   * ranks are numbered separately from the collectives, so that either may come first; issue both before waiting for one.
   */
  send(tensor: Tensor, to: number): Work {
    return this.#issue("send", tensor, tensor, 0, to);
  }

  /** Overwrites `tensor` with the one that rank `from` sends, of the same shape and dtype. */
  recv(tensor: Tensor, from: number): Work {
    return this.#issue("recv", tensor, tensor, 0, from);
  }

  /** Blocks until every rank has called it. */
  barrier(): void {
    workOf(native().issueCollective(this.number, kinds.barrier, 0, 0, 0, 0, even, even)).wait();
  }

  /**
   * Aborts the group for every rank: present and later operations throw `COLLECTIVE_ABORTED` with `reason`. From another
   * thread, or without a membership, use {@link abortGroup}.
   */
  abort(reason: string): void {
    native().abortCommunicator(this.number, reason);
  }

  /**
   * Leaves the group. Ranks that still need this one get `COLLECTIVE_ABORTED`. Idempotent; also done at the end of the thread.
   */
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
 * Joins a group. `local` and threads of one process need no rendezvous. A member that never joins is noticed by the first
 * operation, or by this call if processes must connect.
 * @throws what `look` throws; {TroupeError} `COLLECTIVE_ARGUMENT` for options that are out of range or contradict the other members';
 *   `GLOO_UNAVAILABLE` or `NCCL_UNAVAILABLE` if the backend is missing; `COLLECTIVE_TIMEOUT` if the others do not connect
 *   within the deadline
 */
export function openCommunicator(options: CommunicatorOptions): Communicator {
  const { backend, name, rank, size, rendezvous = "", deadlineMs, delayMs = 0, status, look } = options;
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
      look,
    ),
    options,
  );
}

/**
 * Aborts every group of this name for its members in this process, from any thread. Call it when a member has died. @returns
 * the number of aborted memberships
 */
export function abortGroup(name: string, reason: string): number {
  return native().abortGroup(name, reason);
}

const workOf = (number: number): Work => (number === 0 ? finished : new PendingWork(number));
