import type { Timer } from "../clock.ts";
import type { StatusBoard } from "../inspection/status-board.ts";
import type { ActorRef, AskOptions } from "../messaging/actor-ref.ts";
import type { Pending } from "../messaging/pending.ts";
import type { OnDown } from "../messaging/watches.ts";
import type { Addressed } from "../protocol/address.ts";
import type { Down } from "../protocol/failure.ts";
import type { AskKind, In, Kind, Out, Protocol } from "../protocol/messages.ts";
import type { SpawnOptions } from "../protocol/spawn.ts";

/** A message taken by a blocking receive. A question is answered by `reply` or `fail`, at once or later. */
export type Received<P, K extends Kind<P>> = {
  [Q in K]: {
    readonly kind: Q;
    readonly message: In<P, Q>;
    fail(error: unknown): void;
  } & (Q extends AskKind<P> ? { reply(answer: Out<P, Q>): void } : unknown);
}[K];

/** The functions of the runtime that an actor can call; given to its `start`. */
export interface ActorContext<P> {
  /** A ref to this actor, to be put into messages. */
  readonly self: ActorRef<P>;
  readonly name: string;
  readonly incarnation: number;
  /** This actor's line on the status board. */
  readonly board: Pick<StatusBoard, "set" | "collective">;

  /** Resolves when messages go straight to that actor's thread; await it before blocking. Rejects with ActorDown. */
  connect(ref: Addressed): Promise<void>;
  /** Calls `onDown` once when that actor has ended, also if it has already; an error in it is this actor's failure. */
  watch(ref: Addressed, onDown: OnDown): void;
  /**
   * Calls `onDown` once, when the first of the actors ends that this actor's supervisor started together with it, also if one
   * has already; never for an actor without a supervisor. A second call replaces the first.
   */
  watchSiblings(onDown: OnDown): void;
  /** Returns how that actor has ended, if this one knows: it does of those that it watches or has sent to. */
  endOf(ref: Addressed): Down | undefined;
  /** Removes all watches on that actor, even if its end is already known. */
  unwatch(ref: Addressed): void;
  /** Starts an actor that ends with this one; its failure is this one's too, unless this one watches it. */
  spawn<Q extends Protocol<Q>, Init = undefined>(options: SpawnOptions<Init>): Promise<ActorRef<Q>>;
  /**
   * Finds an actor of this system by name: the present incarnation, or, while it starts or is restarted, the next one.
   * @throws {TroupeError} `ACTOR_UNKNOWN` with the nearest name; `ASK_TIMEOUT` if it has not started by the deadline
   */
  find<Q>(name: string, options: AskOptions): Promise<ActorRef<Q>>;
  /**
   * Sends this actor a message once, in `ms` from now, unless it is cancelled before or the actor ends. It is handled in its turn,
   * as any other; a thread that blocks is late.
   * @throws {TroupeError} `DEADLINE_INVALID` for a time that is not a positive number
   */
  after<K extends Kind<P>>(ms: number, kind: K, message: In<P, K>): Timer;
  /** As {@link after}, again and again. A turn that the thread is too late for is left out. */
  every<K extends Kind<P>>(ms: number, kind: K, message: In<P, K>): Timer;
  /** Sends plain data to the system's `onEvent` by the telemetry lane. It never waits; the oldest events are dropped. */
  emit(event: unknown): void;
  /** Posts at once the messages sent in this turn, for a handler that blocks or computes for long afterwards. */
  flush(): void;
  /** Stops this actor in order once the current handler returns. */
  stop(reason?: string): void;

  /** Sends a question at once, from an actor that may block; `wait` takes the answer. */
  request<Q, K extends AskKind<Q>>(
    ref: ActorRef<Q>,
    kind: K,
    message: In<Q, K>,
    options: AskOptions,
  ): Pending<Out<Q, K>>;
  /** Does as `find`, from an actor that may block; `wait` takes the ref. */
  seek<Q>(name: string, options: AskOptions): Pending<ActorRef<Q>>;
  /**
   * Blocks this thread until the answer is there.
   * @throws {ActorDown} as soon as the other end is gone
   * @throws {AskTimeout} at the deadline given to `request`
   * @throws {StopRequested} as soon as this actor is asked to stop
   */
  wait<T>(pending: Pending<T>): T;
  /**
   * Blocks this thread until a message of one of `kinds` is there, and takes it.
   * @throws {TroupeError} `RECEIVE_TIMEOUT` at the deadline
   * @throws {StopRequested} as soon as this actor is asked to stop
   */
  receive<K extends Kind<P>>(kinds: readonly K[], options: { readonly deadlineMs: number }): Received<P, K>;
  /** Receives what has arrived without blocking; handles control messages now. @throws {StopRequested} when asked to stop */
  poll(): void;
}
