import type { ActorRecord } from "../system/actor-record.ts";
import type { CollectiveStatus } from "./collective-line.ts";
import type { ActorState } from "./status-board.ts";

/** What one living actor is doing. */
export interface ActorInspection {
  readonly actor: string;
  readonly incarnation: number;
  /** The process it lives in, as the operating system numbers it. */
  readonly pid: number;
  readonly state: ActorState;
  /** How long it has been in this state; for an idle actor, how long ago its last message was taken up. */
  readonly ageMs: number;
  /** The kind of message it is handling, undefined when none. */
  readonly handling: string | undefined;
  /** The actor whose answer it blocks for, `name#incarnation`. */
  readonly waitingFor: string | undefined;
  /** How long ago its system knocked where it seems idle and has not heard: its thread is stuck. Undefined where it has. */
  readonly unheardMs: number | undefined;
  readonly numQueued: number;
  readonly numHandled: number;
  /** What it said last it was doing, by `context.board.set`; undefined when it never did. */
  readonly op:
    | { readonly name: string; readonly block: string; readonly sequence: number; readonly ageMs: number }
    | undefined;
  /** The collective that it is in or was in last, and for how long it has been there or gone on; undefined before the first. */
  readonly collective: InspectedCollective | undefined;
}

/** What the board says of an actor's collectives. */
export interface InspectedCollective extends Omit<CollectiveStatus, "sinceMs"> {
  readonly ageMs: number;
}

/** Reads an actor's board. */
export function inspectActor(
  record: ActorRecord,
  nowMs: number,
  nameOf: (uid: number) => string | undefined,
): ActorInspection {
  const status = record.board.read();
  const { op, block, sequence, opSinceMs, collective } = status;
  const isUnheard = status.state === "idle" && record.knockedMs > status.heardMs;
  return {
    actor: record.address.name,
    incarnation: record.address.incarnation,
    pid: record.place.host?.pid ?? process.pid,
    state: status.state,
    ageMs: nowMs - status.sinceMs,
    handling: status.kindIndex < 0 ? undefined : record.kinds[status.kindIndex],
    waitingFor: status.waitingFor < 0 ? undefined : nameOf(status.waitingFor),
    unheardMs: isUnheard ? nowMs - record.knockedMs : undefined,
    numQueued: status.numQueued,
    numHandled: status.numHandled,
    op: op === "" ? undefined : { name: op, block, sequence, ageMs: nowMs - opSinceMs },
    collective: collective && inspectCollective(collective, nowMs),
  };
}

function inspectCollective({ sinceMs, ...told }: CollectiveStatus, nowMs: number): InspectedCollective {
  return { ...told, ageMs: nowMs - sinceMs };
}
