import type { LinkPlace } from "../hosting/placement.ts";
import type { WorkerHandle } from "../hosting/thread.ts";
import type { StatusBoard } from "../inspection/status-board.ts";
import type { Address } from "../protocol/address.ts";
import type { Down } from "../protocol/failure.ts";
import type { ActorRole } from "../protocol/spawn.ts";
import type { Siblings } from "./siblings.ts";

/** Who answers for an incarnation's failure; nobody where neither is said. */
export interface Answerable {
  /** Those that its supervisor starts with it: one that answers without being told by the system. */
  readonly siblings?: Siblings;
  /** The actor that spawned it, which it does not outlive. */
  readonly ownerUid?: number;
}

/** One incarnation of an actor as its system keeps it. */
export interface ActorRecord {
  /** Its lanes are known once it has started. */
  address: Address;
  readonly place: LinkPlace;
  readonly role: ActorRole;
  /** Of the process it lives in, as the operating system numbers it. */
  readonly pid: number;
  /** Of the host that it lives on; 0 for that of its system. */
  readonly hostPlace: number;
  readonly board: StatusBoard;
  readonly worker: WorkerHandle;
  /** Those that its supervisor, which answers for its failure, has started with it; undefined where it has none. */
  readonly siblings: Siblings | undefined;
  /** The actor that spawned it, which it does not outlive. */
  readonly ownerUid: number | undefined;
  /** Kinds by the index the status board names them with. */
  kinds: readonly string[];
  /** Whether its `start` has resolved. */
  hasStarted: boolean;
  /** When its system last asked for a sign that its thread takes in what comes; 0 before the first. */
  probedMs: number;
  /** Actors that watch it. */
  readonly watchers: Set<number>;
  /** Actors with a link of their own to it, and the route that it takes between processes; 0 within one. */
  readonly linked: Map<number, number>;
  readonly started: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<Down>;
  down: Down | undefined;
}

/** The record of an incarnation that has just been launched. */
export function recordOf(
  address: Address,
  place: LinkPlace,
  { board, worker, role }: Pick<ActorRecord, "board" | "worker" | "role">,
  { siblings, ownerUid }: Answerable,
): ActorRecord {
  return {
    address,
    place,
    role,
    pid: place.host?.pid ?? process.pid,
    hostPlace: place.host?.place ?? 0,
    board,
    worker,
    siblings,
    ownerUid,
    kinds: [],
    hasStarted: false,
    probedMs: 0,
    watchers: new Set(),
    linked: new Map(),
    started: Promise.withResolvers<void>(),
    ended: Promise.withResolvers<Down>(),
    down: undefined,
  };
}
