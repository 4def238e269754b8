import type { UserCall } from "../../errors/index.ts";
import type { ActorRole } from "./spawn.ts";

/** The states of an actor, as the runtime sees it. */
// biome-ignore format: a list
export const actorStates = [
  "starting", "idle", "handling", "waiting", "stopping", "stopped", "failed",
] as const;

/** One of {@link actorStates}. */
export type ActorState = (typeof actorStates)[number];

/** The collective that an actor is in, or was in last. */
export interface CollectiveStatus {
  /** Name of the operation, such as "allReduce". */
  readonly name: string;
  /** Name of the group, as its members call it. */
  readonly group: string;
  /** Number of the collective: a count of those that the actor has joined, in the group or of this kind. */
  readonly sequence: number;
  /** Whether the thread is waiting for other ranks in native code. */
  readonly isWaiting: boolean;
  /** When the actor joined it, or went on from it, in ms of the process's clock. */
  readonly sinceMs: number;
}

/** A living actor and what it is doing. */
export interface ActorInspection extends ActorRole {
  readonly actor: string;
  readonly incarnation: number;
  /** Number of the host it lives on; 0 for the host of its system. */
  readonly host: number;
  /** Process id on that host. */
  readonly pid: number;
  readonly state: ActorState;
  /** How long it has been in this state; for an idle actor, how long ago its last message was taken up. */
  readonly ageMs: number;
  /** The kind of message it is handling, undefined when none. */
  readonly handling: string | undefined;
  /** The actor whose answer it is blocked on, `name#incarnation`. */
  readonly waitingFor: string | undefined;
  /** Age of the heartbeat probe that it has not answered although it seems idle: its thread is stuck. Else undefined. */
  readonly unresponsiveMs: number | undefined;
  readonly numQueued: number;
  readonly numHandled: number;
  /** The operation that it last reported by `context.board.set`; undefined before the first. */
  readonly op:
    | { readonly name: string; readonly block: string; readonly sequence: number; readonly ageMs: number }
    | undefined;
  /** The user's function that its thread waits for; undefined where it waits for none. */
  readonly call: InspectedCall | undefined;
  /** The collective that it is in or was in last; undefined before the first. */
  readonly collective: InspectedCollective | undefined;
}

/** A call of a user's function, as the status board shows it. */
export interface InspectedCall extends Omit<UserCall, "sinceMs"> {
  readonly ageMs: number;
}

/** An actor's last collective, as the status board shows it. */
export interface InspectedCollective extends Omit<CollectiveStatus, "sinceMs"> {
  readonly ageMs: number;
}
