import type { ActorRecord } from "./actor-record.ts";
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
  readonly numQueued: number;
  readonly numHandled: number;
  /** What it said last it was doing, by `context.board.set`; undefined when it never did. */
  readonly op:
    | { readonly name: string; readonly block: string; readonly sequence: number; readonly ageMs: number }
    | undefined;
}

/** Reads an actor's board. */
export function inspectActor(
  record: ActorRecord,
  nowMs: number,
  nameOf: (uid: number) => string | undefined,
): ActorInspection {
  const status = record.board.read();
  const { op, block, sequence, opSinceMs } = status;
  return {
    actor: record.address.name,
    incarnation: record.address.incarnation,
    pid: record.place.host?.pid ?? process.pid,
    state: status.state,
    ageMs: nowMs - status.sinceMs,
    handling: status.kindIndex < 0 ? undefined : record.kinds[status.kindIndex],
    waitingFor: status.waitingFor < 0 ? undefined : nameOf(status.waitingFor),
    numQueued: status.numQueued,
    numHandled: status.numHandled,
    op: op === "" ? undefined : { name: op, block, sequence, ageMs: nowMs - opSinceMs },
  };
}
