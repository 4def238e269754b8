import type { LinkPlace } from "../hosting/placement.ts";
import type { WorkerHandle } from "../hosting/thread.ts";
import type { StatusBoard } from "../inspection/status-board.ts";
import type { Address } from "../protocol/address.ts";
import type { Down } from "../protocol/failure.ts";
import type { ActorRole } from "../protocol/spawn.ts";
import type { Part } from "./part.ts";
import type { Siblings } from "./siblings.ts";

/** The part of an incarnation, and the supervisor or owner that is responsible for its failure. With neither, the failure is unhandled. */
export interface Answerable {
  readonly part: Part;
  /** The children that its supervisor starts with it. The supervisor notices the failure by itself. */
  readonly siblings?: Siblings;
  /** Uid of the actor that spawned it, which it does not outlive. */
  readonly ownerUid?: number;
}

/** The system's record of one incarnation of an actor. */
export interface ActorRecord {
  /** Its lanes are known once it has started. */
  address: Address;
  readonly place: LinkPlace;
  readonly role: ActorRole;
  /** Id of the process it lives in. */
  readonly pid: number;
  /** Number of the host it lives on; 0 for the host of its system. */
  readonly hostPlace: number;
  readonly board: StatusBoard;
  readonly worker: WorkerHandle;
  /** The part of its system that it belongs to. */
  readonly part: Part;
  /** The children that its supervisor has started with it; undefined if it has no supervisor. */
  readonly siblings: Siblings | undefined;
  /** Uid of the actor that spawned it, which it does not outlive. */
  readonly ownerUid: number | undefined;
  /** Kinds of messages, by their index on the status board. */
  kinds: readonly string[];
  /** Whether its `start` has resolved. */
  hasStarted: boolean;
  /** When its system last sent it a heartbeat probe; 0 before the first. */
  probedMs: number;
  /** Uids of the actors that watch it. */
  readonly watchers: Set<number>;
  /** Uids of the actors that are linked to it, each with the route between their processes; 0 within one process. */
  readonly linked: Map<number, number>;
  readonly started: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<Down>;
  down: Down | undefined;
}

/** Makes the record of an incarnation that has just been launched. */
export function recordOf(
  address: Address,
  place: LinkPlace,
  { board, worker, role }: Pick<ActorRecord, "board" | "worker" | "role">,
  { part, siblings, ownerUid }: Answerable,
): ActorRecord {
  return {
    address,
    place,
    role,
    pid: place.host?.pid ?? process.pid,
    hostPlace: place.host?.place ?? 0,
    board,
    worker,
    part,
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
