import { appendFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../../errors/untrusted/index.ts";

/** Name of the file in a run's folder. */
const FILE = "mlflow.jsonl";
/** The most figures of a request that MLflow takes. */
export const MOST_METRICS = 1_000;
/** A longer file is written again without what is answered, once that is half of it. */
const MOST_BYTES = 1 << 16;

const metric = z.object({
  key: z.string(),
  value: z.union([z.number(), z.enum(["NaN", "Infinity", "-Infinity"])]),
  timestamp: z.number(),
  step: z.number(),
});

/** A name in a folder, not that of a folder above. */
const NAME = /^(?!\.+$)[\w.-]+$/;

/** A request other than a figure. Files are named within the run's folder, so that no other is ever sent. */
const ask = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("begin"),
    isNew: z.boolean(),
    key: z.string(),
    job: z.string(),
    timeMs: z.number(),
  }),
  z.object({
    kind: z.literal("post"),
    path: z.enum(["runs/log-batch", "runs/set-tag", "runs/update"]),
    fields: z.record(z.string(), z.unknown()),
  }),
  z.object({
    kind: z.literal("file"),
    checkpoint: z.string().regex(NAME),
    file: z.string().regex(NAME),
  }),
]);

const line = z.union([
  z.object({ url: z.string(), run: z.string().optional(), steps: z.record(z.string(), z.number()) }),
  z.object({ metrics: z.array(metric) }),
  z.object({ ask }),
  z.object({ run: z.string() }),
  z.object({ sent: z.number() }),
  z.object({ done: z.number() }),
]);

/** A value of a curve, as MLflow has it. */
export type Metric = Readonly<z.infer<typeof metric>>;

/** A request that another process can send. Plain data. */
export type Ask = z.infer<typeof ask>;

/** Figures that are sent together, or another request. */
export type Entry = { readonly metrics: readonly Metric[] } | { readonly ask: Ask };

/**
 * The file of a run's folder that has what an MLflow server has not taken yet, for the process that resumes the run, and which MLflow
 * run it is. It is written before a request is sent, and appended to until half of it is answered. Without a folder nothing is kept.
 */
export class Journal {
  /** The MLflow run of the folder. */
  run: string | undefined;
  /** Entries that wait, in order. */
  readonly waiting: Entry[] = [];
  /** Whether the first that waits was sent, and may have arrived. */
  wasSent = false;
  /** The latest step of each curve. */
  readonly steps = new Map<string, number>();
  #path: string | undefined;
  readonly #url: string;
  #hasBegun = false;
  /** Entries of the file that are not answered, in order. */
  #unanswered: Entry[] = [];
  /** How many figures, or other requests, of them are sent. */
  #numSent = 0;
  /** The MLflow run of the first that is not answered. */
  #runInFile: string | undefined;
  #numBytes = 0;
  /** A longer file is written again. */
  #mostBytes = MOST_BYTES;

  /** Reads the file of a folder, if there is one for this server. */
  constructor(folder: string | undefined, url: string) {
    this.#path = folder === undefined ? undefined : join(folder, FILE);
    this.#url = url;
    if (this.#path === undefined) return;
    try {
      this.#read(readBoundedTextSync(this.#path, maxFileBytes.text));
    } catch {
      // There is none.
    }
  }

  /** Begins a run, after what waits. @param isNew - whether it is another run than the former one of the folder */
  begin(isNew: boolean): void {
    if (isNew) this.steps.clear();
    if (!this.#hasBegun) this.#rewrite();
    this.#hasBegun = true;
    this.waiting.length = 0;
    // In the file it is that of what waits, until the new run is begun there.
    if (isNew) this.run = undefined;
  }

  metrics(metrics: readonly Metric[]): void {
    for (const { key, step } of metrics) this.steps.set(key, Math.max(step, this.steps.get(key) ?? step));
    this.#add({ metrics });
  }

  ask(request: Ask): void {
    this.#add({ ask: request });
  }

  /** Notes that the first `count` of those that wait are sent. */
  sent(count: number): void {
    this.#numSent = count;
    this.#append({ sent: count });
  }

  /** Notes that they are answered. */
  done(count: number): void {
    this.#numSent = 0;
    let [numEntries, numLeft] = [0, count];
    for (const entry of this.#unanswered) {
      if (sizeOf(entry) > numLeft) break;
      numLeft -= sizeOf(entry);
      numEntries++;
    }
    this.#unanswered.splice(0, numEntries);
    const [first] = this.#unanswered;
    if (numLeft > 0 && first !== undefined && "metrics" in first)
      this.#unanswered[0] = { metrics: first.metrics.slice(numLeft) };
    if (this.#numBytes > this.#mostBytes) this.#rewrite();
    else this.#append({ done: count });
  }

  /** Notes which MLflow run it is. */
  belongsTo(run: string): void {
    this.run = run;
    this.#runInFile = run;
    this.#append({ run });
  }

  #read(text: string): void {
    const entries: ({ readonly metric: Metric } | { readonly ask: Ask })[] = [];
    let [numSent, isOurs] = [0, false];
    for (const each of text.split("\n")) {
      // The last line of a process that was killed may be cut.
      const read = each === "" ? undefined : line.safeParse(parsed(each)).data;
      if (read === undefined) continue;
      if ("url" in read) isOurs = read.url === this.#url;
      if (!isOurs) return;
      if ("run" in read && read.run !== undefined) this.run = read.run;
      if ("steps" in read) for (const [key, step] of Object.entries(read.steps)) this.steps.set(key, step);
      if ("ask" in read) {
        entries.push({ ask: read.ask });
        if (read.ask.kind === "begin" && read.ask.isNew) this.steps.clear();
      }
      if ("sent" in read) numSent = read.sent;
      if ("done" in read) {
        entries.splice(0, read.done);
        numSent = 0;
      }
      if ("metrics" in read)
        for (const one of read.metrics) {
          entries.push({ metric: one });
          this.steps.set(one.key, Math.max(one.step, this.steps.get(one.key) ?? one.step));
        }
    }
    this.wasSent = numSent > 0;
    for (const [at, entry] of entries.entries()) {
      const last = this.waiting.at(-1);
      if ("ask" in entry) this.waiting.push(entry);
      // Figures that were sent together are sent again as they were.
      else if (
        last !== undefined &&
        "metrics" in last &&
        at !== numSent &&
        last.metrics.length < MOST_METRICS
      )
        (last.metrics as Metric[]).push(entry.metric);
      else this.waiting.push({ metrics: [entry.metric] });
    }
    this.#unanswered = [...this.waiting];
    const [first] = this.waiting;
    this.#numSent = this.wasSent && first !== undefined ? sizeOf(first) : 0;
    this.#runInFile = this.run;
  }

  #add(entry: Entry): void {
    this.#unanswered.push(entry);
    this.#append(entry);
  }

  /** Leaves out what is answered. */
  #rewrite(): void {
    if (this.#path === undefined) return;
    const head = { url: this.#url, run: this.#runInFile, steps: Object.fromEntries(this.steps) };
    const sent = this.#numSent > 0 ? [{ sent: this.#numSent }] : [];
    const text = [head, ...this.#unanswered, ...sent].map((each) => `${JSON.stringify(each)}\n`).join("");
    this.#write((path) => {
      writeFileSync(`${path}.tmp`, text);
      renameSync(`${path}.tmp`, path);
    });
    this.#numBytes = text.length;
    this.#mostBytes = Math.max(MOST_BYTES, 2 * text.length);
  }

  #append(entry: object): void {
    const text = `${JSON.stringify(entry)}\n`;
    this.#numBytes += text.length;
    this.#write((path) => appendFileSync(path, text));
  }

  /** A folder that is gone, or a full disk, keeps nothing: the figures are sent all the same. */
  #write(write: (path: string) => void): void {
    if (this.#path === undefined) return;
    try {
      write(this.#path);
    } catch {
      this.#path = undefined;
    }
  }
}

/** Figures, or other requests, in an entry. */
export function sizeOf(entry: Entry): number {
  return "metrics" in entry ? entry.metrics.length : 1;
}

function parsed(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
