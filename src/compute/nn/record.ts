import { threadId } from "node:worker_threads";
import {
  gradEnabled,
  joinStatistics,
  noGrad,
  ops,
  type Statistics,
  scope,
  statisticsOf,
  type Tensor,
} from "../tensor/index.ts";

/** One recorded tensor, over all micro-batches of a step on one rank. Plain data. */
export interface RecordedTensor {
  /** Full name, `<group.>k.name`, where k counts the records of that name in one pass. */
  readonly name: string;
  /** Number of records before it in a forward pass. */
  readonly place: number;
  /** Shape of all micro-batches' tensors, concatenated along dim 0. */
  readonly shape: readonly number[];
  readonly values: Statistics;
  /** Statistics of its gradient; undefined if it got none. */
  readonly gradient: Statistics | undefined;
  /** Its elements, row-major, if they are kept; "too many" if a rank records more than 32 MiB. */
  readonly numbers?: Float32Array | "too many" | undefined;
}

/** Limit of the recorded elements that one rank keeps in a step, in bytes, because they travel in one message. */
const MAX_KEPT_BYTES = 1 << 25;

/** One recorded tensor, with the id under which its gradient is kept in backward. */
interface Record {
  readonly id: number;
  readonly place: number;
  readonly shape: readonly number[];
  readonly values: Statistics;
  readonly numbers: Float32Array | "too many" | undefined;
}

/**
 * Marks a tensor of a model for inspection. While a run is inspected, statistics of the tensor and of its gradient are
 * recorded; otherwise nothing happens. A block that is recomputed in backward records its tensors once.
 * @param group - optional prefix that several names share
 * @returns a tensor equal to `x`; use it instead of `x`, so that its gradient is recorded
 */
export function recordTensor(x: Tensor, name: string, group?: string): Tensor {
  return present?.record(x, name, group) ?? x;
}

/** Collects the tensors that a rank records in one step. A thread has one at a time; synchronous. */
export class TensorRecording implements Disposable {
  readonly #records = new Map<string, Record[]>();
  #counts = new Map<string, number>();
  #place = 0;
  /** Whether records are only counted, because they belong to another stage or an earlier pass. */
  #muted = false;
  /** Records of the running block call, in order; for a recomputation also those of the first computation. */
  #made: (Record | undefined)[] = [];
  #again: (Record | undefined)[] | undefined;
  readonly #keeps: (name: string) => boolean;
  #keptBytes = 0;

  /**
   * Starts recording in this thread.
   * @param keeps - whether to keep the elements of a tensor, by its full name, besides its statistics
   */
  constructor(keeps: (name: string) => boolean) {
    this.#keeps = keeps;
    present = this;
  }

  /** Ends recording and returns the records with their gradients so far, in order of first appearance. */
  finish(): RecordedTensor[] {
    const recorded = [...this.#records].map(([name, records]): RecordedTensor => {
      const gradients = scope(() => records.flatMap(({ id }) => ops.troupe.observed(id).map(statisticsOf)));
      return {
        name,
        place: records[0]?.place ?? 0,
        shape: stackedShape(records.map(({ shape }) => shape)),
        values: joinStatistics(records.map(({ values }) => values)),
        gradient: gradients.length === 0 ? undefined : joinStatistics(gradients),
        numbers: joinNumbers(records.map(({ numbers }) => numbers)),
      };
    });
    this[Symbol.dispose]();
    return recorded;
  }

  /** Ends recording and releases gradients that were not read. */
  [Symbol.dispose](): void {
    if (present === this) present = undefined;
    scope(() => {
      for (const { id } of [...this.#records.values()].flat()) ops.troupe.observed(id);
    });
    this.#records.clear();
  }

  record(x: Tensor, name: string, group: string | undefined): Tensor {
    if (this.#again !== undefined) {
      const record = this.#again.shift();
      return record === undefined ? x : observe(x, record);
    }
    const prefix = group === undefined ? "" : `${group}.`;
    const count = this.#counts.get(prefix + name) ?? 0;
    this.#counts.set(prefix + name, count + 1);
    const place = this.#place++;
    if (this.#muted || x.device === "meta") {
      this.#made.push(undefined);
      return x;
    }
    const fullName = `${prefix}${count}.${name}`;
    const values = noGrad(() => statisticsOf(x));
    const record = { id: nextId(), place, shape: x.shape, values, numbers: this.#numbersOf(x, fullName) };
    this.#made.push(record);
    this.#records.set(fullName, [...(this.#records.get(fullName) ?? []), record]);
    return observe(x, record);
  }

  #numbersOf(x: Tensor, name: string): Float32Array | "too many" | undefined {
    if (!this.#keeps(name)) return undefined;
    this.#keptBytes += x.numel * Float32Array.BYTES_PER_ELEMENT;
    if (this.#keptBytes > MAX_KEPT_BYTES) return "too many";
    return noGrad(() => scope(() => x.to("float32").toTypedArray() as Float32Array));
  }

  /** Begins a pass and counts names from 0 again. @param muted - whether another pass records the first tensors */
  begin(muted: boolean): void {
    this.#counts = new Map();
    this.#place = 0;
    this.#muted = muted;
  }

  /** Records the following tensors again. */
  unmute(): void {
    this.#muted = false;
  }

  /** Runs `body` and only counts its records. */
  mute<R>(body: () => R): R {
    const before = this.#muted;
    this.#muted = true;
    try {
      return body();
    } finally {
      this.#muted = before;
    }
  }

  /** Runs a block call. @param again - records of its first computation, if this is a recomputation */
  call<R>(
    body: () => R,
    again: readonly (Record | undefined)[] | undefined,
  ): { readonly result: R; readonly made: readonly (Record | undefined)[] } {
    const before = { made: this.#made, again: this.#again };
    this.#made = [];
    this.#again = again && [...again];
    try {
      return { result: body(), made: this.#made };
    } finally {
      this.#made = before.made;
      this.#again = before.again;
    }
  }
}

let present: TensorRecording | undefined;

/** Returns the recording of this thread, if there is one. */
export function presentRecording(): TensorRecording | undefined {
  return present;
}

/** Wraps `run` so that later calls reuse the records of the first one. */
export function recordedOnce<Args extends readonly unknown[], R>(
  run: (...args: Args) => R,
): (...args: Args) => R {
  let made: readonly (Record | undefined)[] | undefined;
  return (...args) => {
    if (present === undefined) return run(...args);
    const call = present.call(() => run(...args), made);
    made ??= call.made;
    return call.result;
  };
}

/** Concatenates the elements of tensors along dim 0; undefined if some are not kept. */
export function joinNumbers(
  parts: readonly (Float32Array | "too many" | undefined)[],
): Float32Array | "too many" | undefined {
  if (parts.includes("too many")) return "too many";
  const kept = parts.filter((part) => part instanceof Float32Array);
  if (kept.length === 0 || kept.length < parts.length) return undefined;
  const joined = new Float32Array(kept.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of kept) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Returns the shape of tensors concatenated along dim 0. */
export function stackedShape(shapes: readonly (readonly number[])[]): readonly number[] {
  const [first = []] = shapes;
  if (first.length === 0) return [];
  return [shapes.reduce((sum, [rows = 0]) => sum + rows, 0), ...first.slice(1)];
}

function observe(x: Tensor, { id }: Record): Tensor {
  return gradEnabled() && x.requiresGrad ? ops.troupe.observe(x, id) : x;
}

let lastId = 0;

/** Returns an id that is unique in the process, because one table keeps the gradients of all its threads. */
function nextId(): number {
  lastId += 1;
  return threadId * 2 ** 32 + lastId;
}
