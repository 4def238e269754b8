/**
 * An entry of a Chrome trace, as chrome://tracing and ui.perfetto.dev read it: "X" has a duration, "C" counts, "i" is an instant, "s"
 * and "f" are the ends of an arrow, "M" names a lane. Times are in microseconds.
 * @see https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU, "Trace Event Format"
 */
export interface TraceEvent {
  readonly name: string;
  readonly ph: "X" | "C" | "i" | "s" | "f" | "M";
  readonly pid: number;
  readonly tid: number;
  readonly cat?: string | undefined;
  readonly ts?: number;
  readonly dur?: number;
  /** Id that connects the ends of an arrow. */
  readonly id?: string;
  /** "e": an arrow ends at the slice that encloses its time. */
  readonly bp?: "e";
  /** Extent of an instant's line: its lane, its process, everything. */
  readonly s?: "t" | "p" | "g";
  readonly args?: Readonly<Record<string, unknown>>;
}

/** Position of an entry: a process of the trace and a lane in it. */
export interface Lane {
  readonly pid: number;
  readonly tid: number;
}

const MICROSECONDS_PER_MS = 1000;

/** The name of a process of the trace; lower ones stand higher. */
export function processName(pid: number, name: string): TraceEvent[] {
  return [
    { name: "process_name", ph: "M", pid, tid: 0, args: { name } },
    { name: "process_sort_index", ph: "M", pid, tid: 0, args: { sort_index: pid } },
  ];
}

/** The name of a lane; lower ones stand higher. */
export function laneName({ pid, tid }: Lane, name: string, sortIndex = tid): TraceEvent[] {
  return [
    { name: "thread_name", ph: "M", pid, tid, args: { name } },
    { name: "thread_sort_index", ph: "M", pid, tid, args: { sort_index: sortIndex } },
  ];
}

/** An entry with a duration; short ones are drawn a microsecond long. */
export function slice(
  { pid, tid }: Lane,
  name: string,
  { beginMs, endMs }: { readonly beginMs: number; readonly endMs: number },
  args: TraceEvent["args"] = {},
  cat?: string,
): TraceEvent {
  return {
    name,
    cat,
    ph: "X",
    pid,
    tid,
    ts: microseconds(beginMs),
    dur: Math.max(1, microseconds(endMs - beginMs)),
    args,
  };
}

/** Rounds to a thousandth of a microsecond, finer than any clock. */
export function microseconds(timeMs: number): number {
  return Math.round(timeMs * MICROSECONDS_PER_MS * 1000) / 1000;
}

/** A complete trace. @returns JSON */
export function traceText(events: readonly TraceEvent[]): string {
  return JSON.stringify({ displayTimeUnit: "ms", traceEvents: events });
}
