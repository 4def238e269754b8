import type { StatusBoard } from "../inspection/status-board.ts";
import type { ActorRef, AskOptions } from "../messaging/actor-ref.ts";
import type { Pending } from "../messaging/pending.ts";
import type { OnDown } from "../messaging/watches.ts";
import type { Addressed } from "../protocol/address.ts";
import type { AskKind, In, Kind, Out, Protocol } from "../protocol/messages.ts";
import type { SpawnOptions } from "../protocol/spawn.ts";

/** A message taken by a blocking receive; a question is answered by `reply` or `fail`, later if need be. */
export type Received<P, K extends Kind<P>> = {
  [Q in K]: {
    readonly kind: Q;
    readonly message: In<P, Q>;
    fail(error: unknown): void;
  } & (Q extends AskKind<P> ? { reply(answer: Out<P, Q>): void } : unknown);
}[K];

/** What an actor can do beyond answering: given to its `start`. */
export interface ActorContext<P> {
  /** This actor, to be put into messages. */
  readonly self: ActorRef<P>;
  readonly name: string;
  readonly incarnation: number;
  /** This actor's line on the status board. */
  readonly board: Pick<StatusBoard, "set" | "collective">;

  /** Resolves when messages go straight to that actor's thread; do it before blocking. Rejects with ActorDown. */
  connect(ref: Addressed): Promise<void>;
  /** Calls `onDown` once when that actor has ended, also when it has already; a throw in it is this actor's failure. */
  watch(ref: Addressed, onDown: OnDown): void;
  /**
   * Calls `onDown` once, when the first of those has ended that this actor's supervisor started together with it, also when it has
   * already; never for an actor without a supervisor. A second call takes the place of the first.
   */
  watchSiblings(onDown: OnDown): void;
  /** Takes all watches on that actor back, even if its end is already known. */
  unwatch(ref: Addressed): void;
  /**
   * Starts an actor that this one owns: it is stopped when this one ends, and its failure is this one's
   * unless this one watches it.
   */
  spawn<Q extends Protocol<Q>, Init = undefined>(options: SpawnOptions<Init>): Promise<ActorRef<Q>>;
  /** Sends plain data to the system's `onEvent` by the telemetry lane: never waits, the oldest are dropped. */
  emit(event: unknown): void;
  /** Posts at once what was sent in this turn: for a handler that goes on to block or compute for long. */
  flush(): void;
  /** Stops this actor in order once it returns. */
  stop(reason?: string): void;

  /** Sends a question at once, from an actor that blocks; `wait` takes the answer. */
  request<Q, K extends AskKind<Q>>(
    ref: ActorRef<Q>,
    kind: K,
    message: In<Q, K>,
    options: AskOptions,
  ): Pending<Out<Q, K>>;
  /**
   * Blocks this thread until the answer is there.
   * @throws {ActorDown} as soon as the other end is gone
   * @throws {AskTimeout} at the deadline given to `request`
   * @throws {StopRequested} as soon as this actor is asked to stop
   */
  wait<T>(pending: Pending<T>): T;
  /**
   * Blocks this thread until a message of one of `kinds` is there and takes it.
   * @throws {TroupeError} `RECEIVE_TIMEOUT` at the deadline
   * @throws {StopRequested} as soon as this actor is asked to stop
   */
  receive<K extends Kind<P>>(kinds: readonly K[], options: { readonly deadlineMs: number }): Received<P, K>;
  /**
   * Takes in what has arrived without blocking; control-lane messages are handled inside this call.
   * @throws {StopRequested} when this actor is asked to stop
   */
  poll(): void;
}
