import { laneName, processName, slice, traceText } from "../../sinks/index.ts";
import type { Span } from "./simulated-world.ts";

const LANES = ["compute", "communication", "update"] as const;
const MS_PER_SECOND = 1000;

/**
 * Writes a timeline for chrome://tracing and ui.perfetto.dev: a process for each rank, a thread for each lane.
 * @returns JSON
 */
export function chromeTrace(timeline: readonly Span[]): string {
  const ranks = [...new Set(timeline.map(({ rank }) => rank))];
  const names = ranks.flatMap((pid) => [
    ...processName(pid, `rank ${pid}`),
    ...LANES.flatMap((lane, tid) => laneName({ pid, tid }, lane)),
  ]);
  const spans = timeline.map(({ rank, lane, name, step, beginS, endS }) => {
    const interval = { beginMs: beginS * MS_PER_SECOND, endMs: endS * MS_PER_SECOND };
    return slice({ pid: rank, tid: LANES.indexOf(lane) }, name, interval, { step });
  });
  return traceText([...names, ...spans]);
}
