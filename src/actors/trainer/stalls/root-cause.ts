import { FRAMES_KEPT, ownStack, TroupeError } from "../../../errors/index.ts";
import type { ActorInspection } from "../../../runtime/index.ts";
import { explainHang } from "./explain-hang.ts";

/** Errors of actors that worked with a failed one: the cause is that one's failure. */
const CONSEQUENCES: readonly string[] = [
  "ACTOR_DOWN",
  "ACTOR_UNHANDLED",
  "COLLECTIVE_ABORTED",
  "STOP_REQUESTED",
];

/**
 * Returns the cause of an error that only follows from another, as far as it is known; else the error.
 * @param inspections - the state of the run's actors when it ended, see {@link explainHang}
 */
export function rootCause(error: unknown, inspections: readonly ActorInspection[]): unknown {
  return causeOf(explainHang(error, inspections));
}

function causeOf(error: unknown): unknown {
  const follows = error instanceof TroupeError && CONSEQUENCES.includes(error.code);
  return follows && error.cause !== undefined ? causeOf(error.cause) : error;
}

/** Leaves only frames of the user's own sources in the stacks of an error and of its causes. */
export function leaveOwnFrames(error: unknown): void {
  if (!(error instanceof Error)) return;
  if (error.stack !== undefined) error.stack = ownStack(error.stack);
  leaveOwnFrames(error.cause);
}

/** Until disposed, lets errors of this thread record enough frames to include the user's own. */
export function keepFrames(): Disposable {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES_KEPT;
  return {
    [Symbol.dispose]() {
      Error.stackTraceLimit = before;
    },
  };
}
