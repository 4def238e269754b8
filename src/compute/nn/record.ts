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
  /** `<group.>k.name`, where k counts the records of that name in one pass. */
  readonly name: string;
  /** How many records of any name come before it along the model. */
  readonly place: number;
  /** Of all micro-batches' tensors, one after the other along dim 0. */
  readonly shape: readonly number[];
  readonly values: Statistics;
  /** Of what backward began with, with respect to it; none where none has come back. */
  readonly gradient: Statistics | undefined;
  /** Its numbers, row-major, where they are kept; "too many" where a rank records more than 32 MiB of them. */
  readonly numbers?: Float32Array | "too many" | undefined;
}

/** The most bytes of recorded numbers that one rank keeps in a step: they travel in one message. */
const MAX_KEPT_BYTES = 1 << 25;

/** One tensor that was recorded, and under which number its gradient is kept on its way back. */
interface Record {
  readonly id: number;
  readonly place: number;
  readonly shape: readonly number[];
  readonly values: Statistics;
  readonly numbers: Float32Array | "too many" | undefined;
}

/**
 * Marks a tensor of a model for inspection: while the run's tensors are inspected, its statistics and those of its
 * gradient are taken; else nothing happens. A block that is computed again in backward records its tensors once.
 * @param group - what several names belong to, if anything
 * @returns the tensor to go on with in place of `x`, equal to it: gradients are seen on their way through
 */
export function recordTensor(x: Tensor, name: string, group?: string): Tensor {
  return present?.record(x, name, group) ?? x;
}

/** Collects the tensors that a rank records in one step. One a thread at a time; synchronous. */
export class TensorRecording implements Disposable {
  readonly #records = new Map<string, Record[]>();
  #counts = new Map<string, number>();
  #place = 0;
  /** Tensors of another stage or of an earlier pass: they are counted, no more. */
  #muted = false;
  /** Records of the block call that is computed, in order; and those of its first computation, when it is the second. */
  #made: (Record | undefined)[] = [];
  #again: (Record | undefined)[] | undefined;
  readonly #keeps: (name: string) => boolean;
  #keptBytes = 0;

  /**
   * Starts recording in this thread.
   * @param keeps - the tensors whose numbers are kept, beside their statistics, by their full names
   */
  constructor(keeps: (name: string) => boolean = () => false) {
    this.#keeps = keeps;
    present = this;
  }

  /** @returns what was recorded, with the gradients that have come back by now; in order of first appearance */
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

  /** Ends recording; gradients that nobody has asked for are let go. */
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

  /** A pass begins: names are counted anew. @param muted - whether what comes first is another pass's to record */
  begin(muted: boolean): void {
    this.#counts = new Map();
    this.#place = 0;
    this.#muted = muted;
  }

  /** What follows is this pass's own. */
  unmute(): void {
    this.#muted = false;
  }

  /** Counts what `body` records, and takes nothing of it. */
  mute<R>(body: () => R): R {
    const before = this.#muted;
    this.#muted = true;
    try {
      return body();
    } finally {
      this.#muted = before;
    }
  }

  /** Runs a block call. @param again - the records of its first computation, when this is the second */
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

/** What is recorded in this thread, if anything is. */
export function presentRecording(): TensorRecording | undefined {
  return present;
}

/** @returns `run`, of which a second call records what the first one did, and not once more */
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

/** @returns numbers of tensors that lie one after the other along dim 0; undefined where some are not kept */
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

/** @returns the shape of tensors that lie one after the other along dim 0 */
export function stackedShape(shapes: readonly (readonly number[])[]): readonly number[] {
  const [first = []] = shapes;
  if (first.length === 0) return [];
  return [shapes.reduce((sum, [rows = 0]) => sum + rows, 0), ...first.slice(1)];
}

function observe(x: Tensor, { id }: Record): Tensor {
  return gradEnabled() && x.requiresGrad ? ops.troupe.observe(x, id) : x;
}

let lastId = 0;

/** Gradients of all threads of a process are kept in one table. */
function nextId(): number {
  lastId += 1;
  return threadId * 2 ** 32 + lastId;
}
