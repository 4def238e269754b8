import type { Span } from "./simulated-world.ts";

/** One event of a Chrome trace; times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly ph: "X" | "M";
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly args: Readonly<Record<string, unknown>>;
}

const LANES = ["compute", "communication", "update"] as const;
const MICROSECONDS = 1e6;

/**
 * A timeline as chrome://tracing and ui.perfetto.dev read it: a process for each rank, a thread for each lane.
 * @returns JSON
 * @see https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU, "Trace Event Format"
 */
export function chromeTrace(timeline: readonly Span[]): string {
  const ranks = [...new Set(timeline.map(({ rank }) => rank))];
  const names = ranks.flatMap((rank): TraceEvent[] => [
    { name: "process_name", ph: "M", pid: rank, tid: 0, args: { name: `rank ${rank}` } },
    ...LANES.map(
      (lane, tid): TraceEvent => ({ name: "thread_name", ph: "M", pid: rank, tid, args: { name: lane } }),
    ),
  ]);
  const spans = timeline.map(
    ({ rank, lane, name, step, beginS, endS }): TraceEvent => ({
      name,
      ph: "X",
      pid: rank,
      tid: LANES.indexOf(lane),
      ts: beginS * MICROSECONDS,
      dur: (endS - beginS) * MICROSECONDS,
      args: { step },
    }),
  );
  return JSON.stringify({ traceEvents: [...names, ...spans] });
}
