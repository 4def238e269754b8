import { ActorRef, type AskOptions } from "../messaging/actor-ref.ts";
import type { SpawnOptions } from "../actor-system.ts";
import type { Address, Addressed } from "../protocol/address.ts";
import { Blocking } from "./blocking.ts";
import type { Cell } from "./cell.ts";
import { ActorDown } from "../protocol/failure.ts";
import type { Pending } from "../messaging/pending.ts";
import type { AskKind, In, Kind, Out, Protocol } from "./protocol.ts";
import { RecordType } from "../protocol/record.ts";
import { defaultStartDeadlineMs } from "../protocol/settings.ts";
import type { StatusBoard } from "../inspection/status-board.ts";
import { systemAddress } from "../protocol/system-address.ts";
import type { OnDown } from "../messaging/watches.ts";

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

/** The context of the actor in `cell`. */
export function createContext<P>(cell: Cell): ActorContext<P> {
  const { endpoint } = cell;
  const blocking = new Blocking(cell);
  const { name, incarnation } = endpoint.address;
  return {
    self: new ActorRef<P>(endpoint.outbox, endpoint),
    name,
    incarnation,
    board: cell.board,
    connect: async (ref) => {
      const { address } = ref;
      const connection = endpoint.connect(address);
      await connection?.opened;
      const down = endpoint.watches.endOf(address.uid);
      if (down !== undefined) throw new ActorDown(`connect ${address.name}`, down);
    },
    watch: (ref, onDown) => endpoint.watch(ref.address, onDown),
    unwatch: (ref) => endpoint.unwatch(ref.address),
    spawn: async <Q extends Protocol<Q>, Init>(options: SpawnOptions<Init>) => {
      const { init, module, ...place } = options;
      const deadlineMs = 2 * (options.startDeadlineMs ?? defaultStartDeadlineMs);
      const message = { place: { ...place, module: module.href }, init };
      const address = await endpoint.outbox.ask(systemAddress, "spawn", message, { deadlineMs });
      return new ActorRef<Q>(endpoint.outbox, { address: address as Address });
    },
    emit: (event) => endpoint.outbox.emit(cell.system, RecordType.emit, event),
    flush: () => endpoint.connections.flush(),
    stop: (reason = "its own wish") => queueMicrotask(() => cell.requestStop({ reason, drain: true })),
    request: (ref, kind, message, options) =>
      blocking.request(ref.address, kind, message, options) as Pending<never>,
    wait: <T>(pending: Pending<T>) => blocking.wait(pending as Pending<unknown>) as T,
    receive: <K extends Kind<P>>(kinds: readonly K[], options: { readonly deadlineMs: number }) =>
      blocking.receive(kinds, options) as unknown as Received<P, K>,
    poll: () => blocking.poll(),
  };
}
