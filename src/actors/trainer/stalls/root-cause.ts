import { FRAMES_KEPT, ownStack, TroupeError } from "../../../errors/index.ts";

/** Errors of actors that worked with a failed one: the cause is that one's failure. */
const CONSEQUENCES: readonly string[] = [
  "ACTOR_DOWN",
  "ACTOR_UNHANDLED",
  "COLLECTIVE_ABORTED",
  "STOP_REQUESTED",
];

/** Returns the cause of an error that only follows from another, as far as it is known; else the error. */
export function rootCause(error: unknown): unknown {
  const follows = error instanceof TroupeError && CONSEQUENCES.includes(error.code);
  return follows && error.cause !== undefined ? rootCause(error.cause) : error;
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
