import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { maxFileBytes, parseBoundedJson, readBoundedTextSync } from "../../../errors/untrusted/index.ts";
import type { EventOf, EventSink, TellTrouble, TroupeEvent } from "../../../job/events/index.ts";
import { type Bytes, message, varintField } from "../../../library/protobuf.ts";
import { curveOf, pointsOf } from "../curves.ts";
import { RequestQueue } from "../request-queue.ts";
import { settingsOf } from "../settings.ts";
import { SystemMeter } from "../system-figures.ts";
import { FILE_HEAD, logRecord } from "./log-record.ts";
import {
  checkpointRecord,
  exitRecord,
  headerRecord,
  historyRecord,
  runRecord,
  statsRecord,
  summaryRecord,
  type WandbRun,
} from "./records.ts";

/** Options of a Weights & Biases sink. */
export interface WandbOptions {
  /** Folder for the folders of runs; created if missing. Default: `wandb`. */
  readonly dir?: string;
  /** The training's folder: a file in it says which run goes on when the training is resumed. */
  readonly folder?: string | undefined;
  /** Default: the process's. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

const FLUSH_MS = 1_000;
const PATIENCE_MS = 10_000;
/** Name of the file that says which run a training's folder belongs to. */
const FILE = "wandb.json";

/**
 * Writes the files of an offline run, which `wandb sync DIR` sends to Weights & Biases at any time, once or again: settings as the
 * configuration, figures as history and summary, the machine's, and checkpoints as artifacts that refer to their files. `WANDB_PROJECT`,
 * `WANDB_ENTITY`, `WANDB_NAME`, `WANDB_RUN_GROUP` and `WANDB_RUN_ID` are read of the environment; the key is the client's alone.
 * @throws the file system's error if nothing can be written there
 */
export function wandbSink(options: WandbOptions = {}): EventSink {
  return new WandbSink(options);
}

class WandbSink implements EventSink {
  readonly closeDeadlineMs = PATIENCE_MS + FLUSH_MS;
  readonly #options: WandbOptions;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #meter = new SystemMeter();
  readonly #queue: RequestQueue;
  #file: RunFile | undefined;
  #run: WandbRun | undefined;
  /** Figures by step, until the next step is finished; and when the latest came. */
  readonly #lines = new Map<number, { readonly figures: Record<string, number>; timeMs: number }>();
  /** The latest step that was finished. */
  #step = 0;
  /** Steps after a restart are made again, to the same figures. */
  #lastWritten = Number.NEGATIVE_INFINITY;
  #timeMs = 0;
  #hasEnded = false;

  constructor(options: WandbOptions) {
    const { dir = "wandb", environment = process.env } = options;
    this.#options = { ...options, dir };
    this.#environment = environment;
    mkdirSync(dir, { recursive: true });
    this.#queue = new RequestQueue(`Weights & Biases' file in ${dir}`);
  }

  attach(tell: TellTrouble): void {
    this.#queue.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    this.#timeMs = event.timeMs;
    if (event.kind === "run.started") this.#begin(event);
    this.#collect(event);
    if (event.kind === "step.finished") this.#measure(event.timeMs);
    if (event.kind === "checkpoint.saved") this.#saved(event);
    if (event.kind === "run.finished") this.#end(0);
    if (event.kind === "run.failed" || event.kind === "run.interrupted") this.#end(1);
  }

  async close(): Promise<void> {
    this.#writeLines(Number.POSITIVE_INFINITY);
    await this.#queue.close(PATIENCE_MS);
    await this.#file?.close();
  }

  #begin(event: EventOf<"run.started">): void {
    const {
      WANDB_PROJECT,
      WANDB_ENTITY = "",
      WANDB_NAME,
      WANDB_RUN_GROUP = "",
      WANDB_RUN_ID,
    } = this.#environment;
    const { folder } = this.#options;
    const noted = event.firstStep > 0 ? this.#noted() : undefined;
    const id = WANDB_RUN_ID ?? noted ?? randomBytes(4).toString("hex");
    const job = basename(event.job).replace(/\.\w+$/, "");
    this.#run = {
      ...{ id, entity: WANDB_ENTITY, group: WANDB_RUN_GROUP, project: WANDB_PROJECT ?? job },
      name: WANDB_NAME ?? basename(folder ?? job),
      config: settingsOf(event),
      startMs: event.timeMs,
      resumedAt: noted === undefined ? undefined : event.firstStep,
    };
    this.#step = event.firstStep;
    this.#lastWritten = event.firstStep > 0 ? event.firstStep : -1;
    this.#lines.clear();
    this.#hasEnded = false;
    const before = this.#file;
    this.#file = new RunFile(this.#options.dir as string, id, event.timeMs);
    if (before !== undefined) this.#queue.add({ numEntries: 0, send: () => before.close() });
    this.#add(headerRecord);
    this.#add(runRecord(this.#run));
    if (folder !== undefined) writeFileSync(join(folder, FILE), `${JSON.stringify({ run: id })}\n`);
  }

  #collect(event: TroupeEvent): void {
    const points = pointsOf(event);
    if (points.length === 0 || !("step" in event)) return;
    // A checkpoint is saved while later steps are made, and lines rise.
    const step = event.kind === "checkpoint.saved" ? Math.max(event.step, this.#step) : event.step;
    if (step <= this.#lastWritten) return;
    const line = this.#lines.get(step) ?? { figures: {}, timeMs: 0 };
    this.#lines.set(step, line);
    line.timeMs = event.timeMs;
    for (const point of points) line.figures[curveOf(point)] = point.value;
    if (event.kind !== "step.finished") return;
    this.#step = step;
    this.#writeLines(step);
  }

  #writeLines(end: number): void {
    for (const [step, { figures, timeMs }] of [...this.#lines].toSorted(([a], [b]) => a - b)) {
      if (step >= end || this.#run === undefined) return;
      this.#lines.delete(step);
      this.#lastWritten = step;
      const own = { _step: step, _timestamp: timeMs / 1000, _runtime: (timeMs - this.#run.startMs) / 1000 };
      this.#add(historyRecord({ ...figures, ...own }, step));
      this.#add(summaryRecord({ ...figures, ...own }));
    }
  }

  #measure(timeMs: number): void {
    const machine = this.#meter.readDue(timeMs);
    if (machine === undefined) return;
    const { cpu_utilization_percentage: cpu, system_memory_usage_percentage: memory_percent } = machine;
    this.#add(
      statsRecord({ cpu, memory_percent, "proc.memory.rssMB": process.memoryUsage.rss() / 1e6 }, timeMs),
    );
  }

  #saved({ step, path, sizeBytes }: EventOf<"checkpoint.saved">): void {
    if (this.#run === undefined) return;
    const isStored = path.includes("://");
    const files = isStored
      ? [{ path: "checkpoint", url: path, sizeBytes }]
      : readdirSync(path).map((name) => {
          const file = join(path, name);
          return { path: name, url: pathToFileURL(resolve(file)).href, sizeBytes: statSync(file).size };
        });
    this.#add(checkpointRecord(this.#run, `step-${step}`, files));
  }

  #end(code: number): void {
    this.#writeLines(Number.POSITIVE_INFINITY);
    if (this.#hasEnded || this.#run === undefined) return; // an interrupted run fails, too
    this.#hasEnded = true;
    this.#add(exitRecord(code, this.#timeMs - this.#run.startMs));
  }

  #add(record: Bytes): void {
    const file = this.#file;
    if (file === undefined) return;
    this.#queue.add({ numEntries: 1, send: () => file.append(record) });
  }

  /** The run of the training's folder, if it had one. */
  #noted(): string | undefined {
    if (this.#options.folder === undefined) return undefined;
    try {
      const text = readBoundedTextSync(join(this.#options.folder, FILE), maxFileBytes.word);
      const { run } = parseBoundedJson(text) as { readonly run?: unknown };
      return typeof run === "string" ? run : undefined;
    } catch {
      return undefined; // it was not tracked
    }
  }
}

/** The file of a run, written at positions, so that what failed is written again over its own beginning. */
class RunFile {
  readonly #path: string;
  #handle: FileHandle | undefined;
  #position = 0;
  #numRecords = 0;

  constructor(dir: string, id: string, timeMs: number) {
    const folderAt = (ms: number) => {
      const digits = new Date(ms).toISOString().replaceAll(/[-:]/g, "");
      return join(dir, `offline-run-${digits.slice(0, 8)}_${digits.slice(9, 15)}-${id}`);
    };
    // A run may be resumed within the second.
    let ms = timeMs;
    while (existsSync(folderAt(ms))) ms += 1000;
    const folder = folderAt(ms);
    mkdirSync(join(folder, "files"), { recursive: true });
    this.#path = join(folder, `run-${id}.wandb`);
  }

  async append(record: Bytes): Promise<void> {
    this.#handle ??= await open(this.#path, "w");
    const head = this.#position === 0 ? FILE_HEAD : Buffer.alloc(0);
    const numbered = Uint8Array.from(message(varintField(1, this.#numRecords), record));
    const bytes = Buffer.concat([head, logRecord(numbered, this.#position + head.length)]);
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(
        bytes,
        done,
        bytes.length - done,
        this.#position + done,
      );
      done += bytesWritten;
    }
    this.#position += bytes.length;
    this.#numRecords++;
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }
}
