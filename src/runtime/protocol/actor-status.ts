import type { UserCall } from "../../errors/index.ts";
import type { ActorRole } from "./spawn.ts";

/** What an actor does, as the runtime sees it. */
export const actorStates = [
  "starting",
  "idle",
  "handling",
  "waiting",
  "stopping",
  "stopped",
  "failed",
] as const;

/** One of {@link actorStates}. */
export type ActorState = (typeof actorStates)[number];

/** The collective that an actor is in, or was in last. */
export interface CollectiveStatus {
  /** Such as "allReduce". */
  readonly name: string;
  /** Among whom, as its members call it. */
  readonly group: string;
  /** Its number: how many the actor has come to, there or of this kind. */
  readonly sequence: number;
  /** Whether the thread waits in it for others, in native code. */
  readonly isWaiting: boolean;
  /** When it came there, or went on from there, on the process's clock. */
  readonly sinceMs: number;
}

/** What one living actor is doing. */
export interface ActorInspection extends ActorRole {
  readonly actor: string;
  readonly incarnation: number;
  /** The host it lives on, where a launcher has started several; 0 for that of its system. */
  readonly host: number;
  /** The process it lives in, as the operating system of that host numbers it. */
  readonly pid: number;
  readonly state: ActorState;
  /** How long it has been in this state; for an idle actor, how long ago its last message was taken up. */
  readonly ageMs: number;
  /** The kind of message it is handling, undefined when none. */
  readonly handling: string | undefined;
  /** The actor whose answer it blocks for, `name#incarnation`. */
  readonly waitingFor: string | undefined;
  /** How long ago its system sent a heartbeat probe, where it seems idle and has not answered: its thread is stuck. Undefined where it has. */
  readonly unresponsiveMs: number | undefined;
  readonly numQueued: number;
  readonly numHandled: number;
  /** What it said last it was doing, by `context.board.set`; undefined when it never did. */
  readonly op:
    | { readonly name: string; readonly block: string; readonly sequence: number; readonly ageMs: number }
    | undefined;
  /** The user's code that its thread waits for, and for how long; undefined where it waits for none. */
  readonly call: InspectedCall | undefined;
  /** The collective that it is in or was in last, and for how long it has been there or gone on; undefined before the first. */
  readonly collective: InspectedCollective | undefined;
}

/** A call into a user's code, as the board shows it. */
export interface InspectedCall extends Omit<UserCall, "sinceMs"> {
  readonly ageMs: number;
}

/** What the board says of an actor's collectives. */
export interface InspectedCollective extends Omit<CollectiveStatus, "sinceMs"> {
  readonly ageMs: number;
}
