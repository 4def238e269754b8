import { TroupeError } from "../../../errors/index.ts";
import { describeCollective } from "../../../job/events/index.ts";
import type { ActorInspection } from "../../../runtime/index.ts";

/**
 * Explains a missed deadline. @param inspections - the state of the run's actors when it ended with `error`
 * @returns `error`; for a missed deadline, one that also says what every actor was doing, and since when
 */
export function explainHang(error: unknown, inspections: readonly ActorInspection[]): unknown {
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
