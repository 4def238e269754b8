import { ActorRef, type AskOptions } from "../messaging/actor-ref.ts";
import type { Pending } from "../messaging/pending.ts";
import { type Address, systemAddress } from "../protocol/address.ts";
import { ActorDown } from "../protocol/failure.ts";
import type { In, Kind, Protocol } from "../protocol/messages.ts";
import { RecordType } from "../protocol/record.ts";
import { defaultStartDeadlineMs } from "../protocol/settings.ts";
import type { SpawnOptions } from "../protocol/spawn.ts";
import type { ActorContext, Received } from "./actor-context.ts";
import { Blocking } from "./blocking.ts";
import type { Cell } from "./cell.ts";
import { startTimer } from "./timers.ts";

/** Makes the context of the actor in `cell`. */
export function createContext<P>(cell: Cell): ActorContext<P> {
  const { endpoint } = cell;
  const blocking = new Blocking(cell);
  const { name, incarnation } = endpoint.address;
  const self = new ActorRef<P>(endpoint.outbox, endpoint);
  const timer = <K extends Kind<P>>(where: string, ms: number, kind: K, message: In<P, K>) =>
    startTimer(`${where} ${name}.${kind}`, ms, where === "every", {
      clock: endpoint.clock,
      hasEnded: () => cell.lifecycle.hasEnded,
      send: () => self.tell(kind, message),
    });
  return {
    self,
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
    endOf: ({ address }) => endpoint.watches.endOf(address.uid),
    watchSiblings: (onDown) => cell.watchSiblings(onDown),
    unwatch: (ref) => endpoint.unwatch(ref.address),
    spawn: async <Q extends Protocol<Q>, Init>(options: SpawnOptions<Init>) => {
      const { init, module, ...place } = options;
      const deadlineMs = 2 * (options.startDeadlineMs ?? defaultStartDeadlineMs);
      const message = { place: { ...place, module: module.href }, init };
      const address = await endpoint.outbox.ask(systemAddress, "spawn", message, { deadlineMs });
      return new ActorRef<Q>(endpoint.outbox, { address: address as Address });
    },
    find: async <Q>(sought: string, options: AskOptions) =>
      (await endpoint.outbox.ask(systemAddress, "find", sought, options)) as ActorRef<Q>,
    after: (ms, kind, message) => timer("after", ms, kind, message),
    every: (ms, kind, message) => timer("every", ms, kind, message),
    emit: (event) => endpoint.outbox.emit(cell.system, RecordType.emit, event),
    flush: () => endpoint.connections.flush(),
    stop: (reason = "its own request") => queueMicrotask(() => cell.requestStop({ reason, drain: true })),
    request: (ref, kind, message, options) =>
      blocking.request(ref.address, kind, message, options) as Pending<never>,
    seek: (sought, options) => blocking.request(systemAddress, "find", sought, options) as Pending<never>,
    wait: <T>(pending: Pending<T>) => blocking.wait(pending as Pending<unknown>) as T,
    receive: <K extends Kind<P>>(kinds: readonly K[], options: { readonly deadlineMs: number }) =>
      blocking.receive(kinds, options) as unknown as Received<P, K>,
    poll: () => blocking.poll(),
  };
}
