import { type Lane, laneName, processName, type TraceEvent } from "./trace-event.ts";

/** Start and end, on one clock. */
export interface Interval {
  readonly beginMs: number;
  readonly endMs: number;
}

/**
 * Assigns intervals to the lanes of a trace. A trace viewer can draw intervals of one lane only after or within each other; crossing
 * ones get further lanes with the same name.
 */
export class Lanes {
  readonly #emit: (event: TraceEvent) => void;
  /** Named processes; 0, the run, is named by the trace itself. */
  readonly #processes = new Set<number>([0]);
  readonly #families = new Map<string, Family>();
  #numLanes = 0;

  /** @param emit - receives the name of each new process and lane */
  constructor(emit: (event: TraceEvent) => void) {
    this.#emit = emit;
  }

  /**
   * Returns the lane for an interval. Intervals of one lane family must come roughly in the order of their ends.
   * @param actor - owner of the lane
   * @param subject - kind of work in the lane; "" for the actor's own
   * @param mayNest - whether the interval may enclose others: true if one thread did both
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

/** The outermost intervals of one lane. */
class Row {
  readonly lane: Lane;
  readonly #outer: Interval[] = [];

  constructor(lane: Lane) {
    this.lane = lane;
  }

  takes({ beginMs }: Interval, mayNest: boolean): boolean {
    // From the last one back: later ones would lie within the interval.
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
    // Intervals that ended long ago cannot cross a new one.
    if (this.#outer.length > MAX_OUTER) this.#outer.splice(0, MAX_OUTER / 2);
  }
}

const MAX_OUTER = 1024;

/** Process of an actor in the trace: 0 for actors without a rank, then one for each rank. */
function processOf(actor: string): number {
  const [, rank] = /^(?:rank|shard|offload|writer)-(\d+)$/.exec(actor) ?? [];
  return rank === undefined ? 0 : Number(rank) + 1;
}

/** The main thread's own actor is the conductor. */
const laneOf = (actor: string): string => (actor === "system" ? "conductor" : actor);

const LANES_PER_SUBJECT = 100;

/** Orders ranks above their shards, and an actor's own work above its waits. */
function sortIndexOf(actor: string, subject: string): number {
  const kinds = ["system", "rank", "shard", "offload", "writer", "job-loader", "feeder", "checkpointer"];
  const kind = kinds.findIndex((name) => actor.startsWith(name));
  const place = ["", "reduce", "update", "awaiting"].indexOf(subject);
  return (10 * (kind < 0 ? kinds.length : kind) + place) * LANES_PER_SUBJECT;
}
