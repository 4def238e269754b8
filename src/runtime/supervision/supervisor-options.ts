import { TroupeError } from "../../errors/index.ts";
import type { ActorRef } from "../messaging/actor-ref.ts";
import type { Failure } from "../protocol/failure.ts";
import type { SpawnPlace } from "../protocol/spawn.ts";
import type { Backoff, Restart, Strategy } from "./restart-policy.ts";

/** Returns the ref of a sibling that is started before this child. */
export type SiblingRefs = <P>(name: string) => ActorRef<P>;

/** An actor under a supervisor. */
export interface ChildSpec extends SpawnPlace {
  /** Makes the value given to `start`, again for each incarnation. */
  readonly init?: (incarnation: number, refs: SiblingRefs) => unknown;
  /** Default: permanent. */
  readonly restart?: Restart;
  /**
   * Whether it goes on when others are restarted because of one of them; a function is asked each time. Its own end restarts the others
   * too. Default: false.
   */
  readonly outlives?: boolean | (() => boolean);
  /** Whether each incarnation gets a new process. Default: a process goes on where a restart began in another. */
  readonly freshProcess?: boolean;
}

/** A restart that a supervisor has carried out. */
export interface RestartReport {
  /** The child whose end caused the restart. */
  readonly child: string;
  /** All children that were restarted, in that order. */
  readonly restarted: readonly string[];
  /** The failure of that child; undefined if it stopped in order. */
  readonly cause: Failure | undefined;
}

/** Options of a supervisor; names and rules are OTP's. */
export interface SupervisorOptions {
  readonly name: string;
  readonly strategy: Strategy;
  /** Restarts allowed within `withinMs`; at one more the supervisor gives up. Default: 3. */
  readonly restarts?: number;
  /** Default: 300,000. */
  readonly withinMs?: number;
  /** Delays before restarts. Default: none. */
  readonly backoff?: Backoff;
  /** The children in starting order; they are stopped in reverse order. The children of an inner list start together. */
  readonly children: readonly (ChildSpec | readonly ChildSpec[])[];
  /** Deadline for stopping a child, in ms. Before a restart their messages are not drained. */
  readonly stopDeadlineMs?: number;
  /**
   * Whether each child always has a warm standby: a thread, with a process if it lives in one, that has loaded its module and takes
   * its place. It costs the standby's memory. Default: false.
   */
  readonly warmStandby?: boolean;
  readonly onRestart?: (report: RestartReport) => void;
  /** Called when the supervisor has given up, with the first failure of the window and all; else the failure is unhandled. */
  readonly onEscalate?: (cause: Failure, failures: readonly Failure[]) => void;
}

/** Checks the options. @returns the limits on restarts @throws {TroupeError} `SUPERVISOR_OPTION` for an invalid option */
export function checkOptions({ name, children, restarts = 3, withinMs = 300_000 }: SupervisorOptions): {
  readonly restarts: number;
  readonly withinMs: number;
} {
  const refuse = (expected: string, got: string): never => {
    throw new TroupeError("SUPERVISOR_OPTION", {
      where: `supervisor ${name}`,
      expected,
      got,
      hint: "correct the option",
      fields: { supervisor: name },
    });
  };
  const names = children.flat().map((child) => child.name);
  const double = names.find((child, index) => names.indexOf(child) !== index);
  if (double !== undefined) refuse("children of different names", `${double} twice`);
  if (children.length > 0 && children.flat().every(({ outlives }) => outlives))
    refuse("a child that does not outlive others", "none");
  if (!Number.isInteger(restarts) || restarts < 0)
    refuse("restarts to be a whole number from 0", String(restarts));
  if (!(withinMs > 0)) refuse("withinMs to be a positive number", String(withinMs));
  return { restarts, withinMs };
}
