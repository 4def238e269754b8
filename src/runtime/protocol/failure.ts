import {
  type ErrorCode,
  type ErrorOrigin,
  errorTable,
  noteOrigin,
  originOf,
  TroupeError,
} from "../../errors/index.ts";
import { type Address, describe } from "./address.ts";

/** An error as it travels between actors. Plain data, with its causes. */
export interface Failure {
  readonly name: string;
  readonly code?: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The actor it first happened in, `name#incarnation`. */
  readonly actor?: string;
  readonly stack?: string;
  readonly from?: ErrorOrigin;
  readonly cause?: Failure;
}

/** The end of an actor and its reason. */
export interface Down {
  readonly actor: string;
  readonly incarnation: number;
  /** `unknown`: the system never had an actor of this address. */
  readonly reason: "stopped" | "failed" | "unknown";
  /** The failure, if it failed. */
  readonly cause?: Failure;
}

const deepestCause = 8;

/** Turns any thrown value into a {@link Failure}. */
export function toFailure(error: unknown, actor?: string, depth = 0): Failure {
  if (!(error instanceof Error))
    return withActor({ name: "Error", message: String(error), fields: {} }, actor);
  const code = (error as { code?: unknown }).code;
  const hasCause = error.cause !== undefined && depth < deepestCause;
  const actorBefore = error instanceof TroupeError ? error.fields.actor : undefined;
  const from = originOf(error);
  return withActor(
    {
      name: error.name,
      message: error.message,
      fields: error instanceof TroupeError ? plainFields(error.fields) : {},
      // ACTOR_THREW stands for a missing code: do not send it on as a code.
      ...(typeof code === "string" && code !== "ACTOR_THREW" ? { code } : {}),
      ...(error.stack === undefined ? {} : { stack: error.stack }),
      ...(Object.keys(from).length === 0 ? {} : { from }),
      ...(hasCause ? { cause: toFailure(error.cause, undefined, depth + 1) } : {}),
    },
    typeof actorBefore === "string" ? actorBefore : actor,
  );
}

/** Turns a failure back into an error, with its own code if Troupe knows it and `ACTOR_THREW` otherwise. */
export function fromFailure(failure: Failure): TroupeError {
  const known = failure.code !== undefined && failure.code in errorTable;
  const error = new TroupeError(known ? (failure.code as ErrorCode) : "ACTOR_THREW", {
    relayed: failure.message,
    fields: { ...failure.fields, ...(failure.actor === undefined ? {} : { actor: failure.actor }) },
    ...(failure.cause === undefined ? {} : { cause: fromFailure(failure.cause) }),
  });
  if (failure.stack !== undefined) error.stack = failure.stack;
  if (failure.from !== undefined) noteOrigin(error, failure.from);
  return error;
}

/** Returns the innermost cause of a failure, or the failure itself. */
export function firstCause(failure: Failure): Failure {
  return failure.cause === undefined ? failure : firstCause(failure.cause);
}

/** Thrown by ask and wait when the actor at the other end is gone; `cause` says why. */
export class ActorDown extends TroupeError {
  readonly down: Down;

  constructor(where: string, down: Down) {
    const how = {
      stopped: "which has stopped",
      failed: `which failed: ${down.cause?.message}`,
      unknown: "which never existed",
    };
    super("ACTOR_DOWN", {
      where,
      expected: "a living actor",
      got: `${describeDown(down)}, ${how[down.reason]}`,
      hint: "spawn it again, or ask its new incarnation",
      fields: { actor: describeDown(down), reason: down.reason },
      ...(down.cause === undefined ? {} : { cause: fromFailure(down.cause) }),
    });
    this.name = "ActorDown";
    this.down = down;
  }
}

/** Thrown when no answer came by the deadline. The receiver drops the question, or this actor drops the late answer. */
export class AskTimeout extends TroupeError {
  constructor(target: Address, kind: string, deadlineMs: number) {
    super("ASK_TIMEOUT", {
      where: `ask ${describe(target)}.${kind}`,
      expected: `an answer within ${deadlineMs} ms`,
      got: "none",
      hint: "see what the actor does with inspect(), or allow more time",
      fields: { target: describe(target), kind, deadlineMs },
    });
    this.name = "AskTimeout";
  }
}

/** Thrown by `wait`, `receive` and `poll` when this actor has been asked to stop. Let it pass through. */
export class StopRequested extends TroupeError {
  constructor(reason: string) {
    super("STOP_REQUESTED", {
      where: "stop",
      expected: "this call to go on",
      got: `a request to stop: ${reason}`,
      hint: "let this error pass through",
      fields: { reason },
    });
    this.name = "StopRequested";
  }
}

/** Whether an error is a {@link StopRequested} or was caused by one. */
export function isStopRequest(error: unknown): boolean {
  for (let depth = 0; error instanceof Error && depth < deepestCause; depth++, error = error.cause) {
    if (error instanceof StopRequested) return true;
  }
  return false;
}

const describeDown = (down: Down): string => describe({ name: down.actor, incarnation: down.incarnation });

function withActor(failure: Failure, actor: string | undefined): Failure {
  return actor === undefined ? failure : { ...failure, actor };
}

function plainFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  try {
    return structuredClone(fields);
  } catch {
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
  }
}
