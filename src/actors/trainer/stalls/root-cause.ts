import { FRAMES_KEPT, ownStack, TroupeError } from "../../../errors/index.ts";
import { describeCollective } from "../../../job/events/index.ts";
import type { ActorInspection } from "../../../runtime/index.ts";

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

/**
 * Explains a missed deadline. @param inspections - the state of the run's actors when it ended with `error`
 * @returns `error`; for a missed deadline, one that also says what every actor was doing, and since when
 */
function explainHang(error: unknown, inspections: readonly ActorInspection[]): unknown {
  if (!(error instanceof TroupeError) || error.code !== "ASK_TIMEOUT") return error;
  const actors = inspections.map(describe).join("; ");
  return new TroupeError("RUN_HUNG", {
    where: "runtime",
    expected: "progress",
    got: `${error.message}. What the actors do: ${actors}`,
    fields: { inspections },
    cause: error,
  });
}

function describe(inspection: ActorInspection): string {
  const { actor, state, ageMs, handling, waitingFor, unresponsiveMs, op, collective, numQueued } = inspection;
  const message = handling === undefined ? "" : ` ${handling}`;
  const awaited = waitingFor === undefined ? "" : ` for ${waitingFor}`;
  const work = op === undefined ? "" : `, ${op.name} ${op.block} #${op.sequence}`;
  const place = describeCollective(collective);
  const unresponsive =
    unresponsiveMs === undefined ? "" : `, unresponsive for ${(unresponsiveMs / 1000).toFixed(1)} s`;
  const queue = numQueued === 0 ? "" : `, ${numQueued} queued`;
  return `${actor} ${state}${message}${awaited} since ${(ageMs / 1000).toFixed(1)} s${work}${place}${unresponsive}${queue}`;
}
