import { type Lane, laneName, processName, type TraceEvent } from "./trace-event.ts";

/** When something began and ended, on one clock. */
export interface Interval {
  readonly beginMs: number;
  readonly endMs: number;
}

/**
 * Deals intervals to the lanes of a trace. In one lane a trace viewer draws intervals that lie beside or within each
 * other; those that cross get a lane of their own, named like the first.
 */
export class Lanes {
  readonly #emit: (event: TraceEvent) => void;
  /** That of the run is named by the trace itself. */
  readonly #processes = new Set<number>([0]);
  readonly #families = new Map<string, Family>();
  #numLanes = 0;

  /** @param emit - told the name of each new process and lane */
  constructor(emit: (event: TraceEvent) => void) {
    this.#emit = emit;
  }

  /**
   * The lane for an interval, which must not end before one that was dealt to the same family earlier by much: intervals
   * come in the order of their ends.
   * @param actor - whose lane it is
   * @param subject - what the lane shows of that actor; "" for what it does itself
   * @param mayNest - whether it may be drawn around what lies within it: true where one thread did both
   */
  place(actor: string, subject: string, interval: Interval, mayNest: boolean): Lane {
    const pid = processOf(actor);
    if (!this.#processes.has(pid)) {
      this.#processes.add(pid);
      for (const event of processName(pid, `rank ${pid - 1}`)) this.#emit(event);
    }
    const family = this.#familyOf(actor, subject);
    let index = family.findIndex((row) => row.takes(interval, mayNest));
    if (index < 0) {
      index = family.push(new Row({ pid, tid: ++this.#numLanes })) - 1;
      const name = [laneOf(actor), subject, index > 0 ? `(${index + 1})` : ""]
        .filter((part) => part !== "")
        .join(" ");
      const row = family[index] as Row;
      for (const event of laneName(row.lane, name, sortIndexOf(actor, subject) + index)) this.#emit(event);
    }
    const row = family[index] as Row;
    row.put(interval);
    return row.lane;
  }

  #familyOf(actor: string, subject: string): Family {
    const key = `${actor}/${subject}`;
    const known = this.#families.get(key);
    if (known !== undefined) return known;
    const family: Family = [];
    this.#families.set(key, family);
    return family;
  }
}

type Family = Row[];

/** What stands in one lane: intervals that lie beside each other, the outermost ones. */
class Row {
  readonly lane: Lane;
  readonly #outer: Interval[] = [];

  constructor(lane: Lane) {
    this.lane = lane;
  }

  takes({ beginMs }: Interval, mayNest: boolean): boolean {
    // From the last one back: those that begin later would lie within.
    for (let index = this.#outer.length - 1; index >= 0; index--) {
      const other = this.#outer[index] as Interval;
      if (other.endMs <= beginMs) return true;
      if (!mayNest || other.beginMs < beginMs) return false;
    }
    return true;
  }

  put(interval: Interval): void {
    while ((this.#outer.at(-1)?.beginMs ?? Number.NEGATIVE_INFINITY) >= interval.beginMs) this.#outer.pop();
    this.#outer.push(interval);
    // What ended long ago can cross nothing that still comes.
    if (this.#outer.length > MAX_OUTER) this.#outer.splice(0, MAX_OUTER / 2);
  }
}

const MAX_OUTER = 1024;

/** Processes of the trace: 0 for what is of no rank, then one a rank. */
function processOf(actor: string): number {
  const [, rank] = /^(?:rank|shard|offload|writer)-(\d+)$/.exec(actor) ?? [];
  return rank === undefined ? 0 : Number(rank) + 1;
}

/** The main thread's own actor is the conductor. */
function laneOf(actor: string): string {
  return actor === "system" ? "conductor" : actor;
}

const LANES_PER_SUBJECT = 100;

/** Ranks above their shards, what an actor does above what it waits for. */
function sortIndexOf(actor: string, subject: string): number {
  const kinds = ["system", "rank", "shard", "offload", "writer", "job-loader", "feeder", "checkpointer"];
  const kind = kinds.findIndex((name) => actor.startsWith(name));
  const place = ["", "reduce", "update", "awaiting"].indexOf(subject);
  return (10 * (kind < 0 ? kinds.length : kind) + place) * LANES_PER_SUBJECT;
}
