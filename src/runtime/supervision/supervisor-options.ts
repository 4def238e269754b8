import { TroupeError } from "../../errors/index.ts";
import type { ActorRef } from "../messaging/actor-ref.ts";
import type { Failure } from "../protocol/failure.ts";
import type { SpawnPlace } from "../protocol/spawn.ts";
import type { Backoff, Restart, Strategy } from "./restart-policy.ts";

/** Gives the ref of a sibling that is started before this child, not at once with it. */
export type SiblingRefs = <P>(name: string) => ActorRef<P>;

/** An actor under a supervisor. */
export interface ChildSpec extends SpawnPlace {
  /** Makes the value given to `start`, anew for each incarnation. */
  readonly init?: (incarnation: number, refs: SiblingRefs) => unknown;
  /** `permanent` unless said otherwise. */
  readonly restart?: Restart;
}

/** What a supervisor says of a restart it has carried out. */
export interface RestartReport {
  /** The child whose end was the reason. */
  readonly child: string;
  /** All children that were started again, in that order. */
  readonly restarted: readonly string[];
  /** Why it ended; undefined when it stopped in order. */
  readonly cause: Failure | undefined;
}

/** How a supervisor works; the words and rules are OTP's. */
export interface SupervisorOptions {
  readonly name: string;
  readonly strategy: Strategy;
  /** Restarts allowed within `withinMs`; one more, and the supervisor gives up. 3 unless said otherwise. */
  readonly restarts?: number;
  /** 300,000 unless said otherwise. */
  readonly withinMs?: number;
  /** Waits before restarts; none unless said otherwise. */
  readonly backoff?: Backoff;
  /** Started in this order, stopped in the reverse of it; those of a list at once. */
  readonly children: readonly (ChildSpec | readonly ChildSpec[])[];
  /** How children are stopped, before a restart too, where nothing is drained. */
  readonly stopDeadlineMs?: number;
  readonly onRestart?: (report: RestartReport) => void;
  /**
   * Called when it has given up and stopped its children, with the first failure of the window and all of
   * them. Without it the failure is unhandled.
   */
  readonly onEscalate?: (cause: Failure, failures: readonly Failure[]) => void;
}

/**
 * @returns how often children may be restarted
 * @throws {TroupeError} `SUPERVISOR_OPTION` naming what is wrong
 */
export function checkOptions({ name, children, restarts = 3, withinMs = 300_000 }: SupervisorOptions): {
  readonly restarts: number;
  readonly withinMs: number;
} {
  const refuse = (expected: string, got: string): never => {
    throw new TroupeError(
      "SUPERVISOR_OPTION",
      { where: `supervisor ${name}`, expected: expected, got: got, hint: "correct the option" },
      {
        fields: { supervisor: name },
      },
    );
  };
  const names = children.flat().map((child) => child.name);
  const double = names.find((child, index) => names.indexOf(child) !== index);
  if (double !== undefined) refuse("children of different names", `${double} twice`);
  if (!Number.isInteger(restarts) || restarts < 0)
    refuse("restarts to be a whole number from 0", String(restarts));
  if (!(withinMs > 0)) refuse("withinMs to be a positive number", String(withinMs));
  return { restarts, withinMs };
}
