import type { ActorInspection, CollectiveStatus, InspectedCollective } from "../protocol/actor-status.ts";
import type { Address } from "../protocol/address.ts";
import type { ActorRole } from "../protocol/spawn.ts";
import type { StatusBoard } from "./status-board.ts";

/** The facts about an actor that are not on its status board. */
export interface InspectedActor {
  readonly role: ActorRole;
  readonly address: Pick<Address, "name" | "incarnation">;
  /** Id of its process. */
  readonly pid: number;
  /** Number of its host; 0 for the host of its system. */
  readonly hostPlace: number;
  readonly board: StatusBoard;
  /** Kinds of messages, by their index on the board. */
  readonly kinds: readonly string[];
  /** When its system last probed it; 0 before the first. */
  readonly probedMs: number;
}

/** Reads an actor's status board. */
export function inspectActor(
  record: InspectedActor,
  nowMs: number,
  nameOf: (uid: number) => string | undefined,
): ActorInspection {
  const status = record.board.read();
  const { op, block, sequence, opSinceMs, call, collective } = status;
  const isUnresponsive = status.state === "idle" && record.probedMs > status.answeredMs;
  return {
    ...record.role,
    actor: record.address.name,
    incarnation: record.address.incarnation,
    host: record.hostPlace,
    pid: record.pid,
    state: status.state,
    ageMs: nowMs - status.sinceMs,
    handling: status.kindIndex < 0 ? undefined : record.kinds[status.kindIndex],
    waitingFor: status.waitingFor < 0 ? undefined : nameOf(status.waitingFor),
    unresponsiveMs: isUnresponsive ? nowMs - record.probedMs : undefined,
    numQueued: status.numQueued,
    numHandled: status.numHandled,
    op: op === "" ? undefined : { name: op, block, sequence, ageMs: nowMs - opSinceMs },
    call: call && { what: call.what, isPending: call.isPending, ageMs: nowMs - call.sinceMs },
    collective: collective && inspectCollective(collective, nowMs),
  };
}

function inspectCollective({ sinceMs, ...status }: CollectiveStatus, nowMs: number): InspectedCollective {
  return { ...status, ageMs: nowMs - sinceMs };
}
