import { FRAMES_KEPT, ownStack, TroupeError } from "../../../errors/index.ts";

/** Errors of those who were at work with an actor that has failed: its failure is the news. */
const CONSEQUENCES: readonly string[] = [
  "ACTOR_DOWN",
  "ACTOR_UNHANDLED",
  "COLLECTIVE_ABORTED",
  "STOP_REQUESTED",
];

/** @returns the error that another one only follows from, as far as that is known; else itself */
export function rootCause(error: unknown): unknown {
  const follows = error instanceof TroupeError && CONSEQUENCES.includes(error.code);
  return follows && error.cause !== undefined ? rootCause(error.cause) : error;
}

/** Leaves in the stacks of an error and of its causes the lines of people's own sources alone. */
export function leaveOwnFrames(error: unknown): void {
  if (!(error instanceof Error)) return;
  if (error.stack !== undefined) error.stack = ownStack(error.stack);
  leaveOwnFrames(error.cause);
}

/** Lets errors of this thread keep so many frames that people's own are among them, until it is disposed. */
export function keepFrames(): Disposable {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES_KEPT;
  return {
    [Symbol.dispose]() {
      Error.stackTraceLimit = before;
    },
  };
}
