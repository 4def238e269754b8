import type { TraceEvent } from "../../src/tools/sinks/index.ts";

/** One slice of a lane; times in milliseconds from the left edge. */
export interface DrawnSlice {
  readonly name: string;
  readonly cat: string;
  readonly beginMs: number;
  readonly endMs: number;
  /** How many slices it lies within. */
  readonly depth: number;
}

/** One lane, from top to bottom. */
export interface DrawnLane {
  readonly name: string;
  readonly slices: readonly DrawnSlice[];
}

/** One message. */
export interface DrawnArrow {
  readonly fromLane: number;
  readonly fromMs: number;
  readonly toLane: number;
  readonly toMs: number;
}

/** The lanes and arrows of a picture. */
export interface Drawing {
  readonly title: string;
  readonly durationMs: number;
  readonly lanes: readonly DrawnLane[];
  readonly arrows: readonly DrawnArrow[];
}

/** A rank by itself and what its shard does with gradients; the rest is for a viewer that can be scrolled. */
const wanted = /^(rank-\d+|shard-\d+ (reduce|update))$/;
const marginMs = 1;

/** Draws the slices of ranks and shards in one step of a trace, and the activations and gradients between the stages. */
export function drawingOf(text: string, step: number, title = `step ${step}`): Drawing {
  // A killed run leaves the array open.
  const events: TraceEvent[] = JSON.parse(
    text.trimEnd().endsWith("]") ? text : `${text.replace(/,?\s*$/, "")}]`,
  );
  const names = new Map<string, { name: string; sort: number }>();
  for (const event of events) {
    const known = names.get(keyOf(event)) ?? { name: "", sort: 0 };
    if (event.name === "thread_name") names.set(keyOf(event), { ...known, name: String(event.args?.name) });
    if (event.name === "thread_sort_index")
      names.set(keyOf(event), { ...known, sort: event.pid * 1e5 + Number(event.args?.sort_index) });
  }
  const keys = [...names]
    .filter(([, { name }]) => wanted.test(name))
    .toSorted(([, a], [, b]) => a.sort - b.sort);
  const slices = events.filter(({ ph }) => ph === "X");
  const ofStep = slices.filter(
    ({ args, cat }) => args?.step === step && (cat === "forward" || cat === "backward"),
  );
  // The later stages stand at the step's first forward long before the first stage begins it.
  const firstStage = Math.min(...ofStep.map(({ pid }) => pid));
  const ofFirst = ofStep.filter(({ pid }) => pid === firstStage);
  const begin = Math.min(...ofFirst.map(({ ts = 0 }) => ts)) - marginMs * 1000;
  const updates = slices.filter(({ args, cat }) => args?.step === step && cat === "update");
  const end = Math.max(...[...ofStep, ...updates].map(({ ts = 0, dur = 0 }) => ts + dur)) + marginMs * 1000;
  const inView = ({ ts = 0, dur = 0 }: TraceEvent) => ts < end && ts + dur > begin;
  const lanes = keys.map(([key, { name }]) => ({
    name,
    slices: nested(
      slices.filter((event) => keyOf(event) === key && inView(event) && isShown(event)),
      begin,
    ),
  }));
  return {
    title,
    durationMs: (end - begin) / 1000,
    lanes,
    arrows: arrowsOf(
      events,
      keys.map(([key]) => key),
      begin,
      end,
    ),
  };
}

const keyOf = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;

/** The message that spans a step would hide all slices in it. */
function isShown({ name, cat }: TraceEvent): boolean {
  return !(cat === "message" && name === "step");
}

function nested(slices: readonly TraceEvent[], origin: number): DrawnSlice[] {
  const open: number[] = [];
  return slices
    .toSorted((a, b) => (a.ts ?? 0) - (b.ts ?? 0) || (b.dur ?? 0) - (a.dur ?? 0))
    .map(({ name, cat = "", ts = 0, dur = 0 }) => {
      while ((open.at(-1) ?? Number.POSITIVE_INFINITY) <= ts) open.pop();
      const depth = open.length;
      open.push(ts + dur);
      return { name, cat, beginMs: (ts - origin) / 1000, endMs: (ts + dur - origin) / 1000, depth };
    });
}

function arrowsOf(
  events: readonly TraceEvent[],
  keys: readonly string[],
  begin: number,
  end: number,
): DrawnArrow[] {
  const starts = new Map(events.filter(({ ph }) => ph === "s").map((event) => [event.id, event]));
  const isInView = ({ ts = 0 }: TraceEvent) => ts >= begin && ts <= end;
  return events.flatMap((event) => {
    const start = event.ph === "f" ? starts.get(event.id) : undefined;
    if (start === undefined || !isInView(event) || !isInView(start)) return [];
    const [fromLane, toLane] = [keys.indexOf(keyOf(start)), keys.indexOf(keyOf(event))];
    if (fromLane < 0 || toLane < 0 || fromLane === toLane) return [];
    const [fromMs, toMs] = [start, event].map(({ ts = 0 }) => (ts - begin) / 1000) as [number, number];
    return [{ fromLane, fromMs, toLane, toMs }];
  });
}
