import { openSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import {
  BoundedWriter,
  closeDescriptor,
  type EventOf,
  type EventSink,
  fileWriteMs,
  makeFolder,
  stampMs,
  type TroupeEvent,
} from "../../events/index.ts";
import { type Point, pointsOf } from "../curves.ts";
import {
  histogramValue,
  KnownScalar,
  record,
  scalarValue,
  sessionEnd,
  sessionStart,
  summaryRecord,
  textValue,
  valueField,
  versionEvent,
} from "./summary.ts";
import type { Bytes } from "./wire.ts";

/**
 * Writes what TensorBoard shows: scalars of steps, evaluations, memory and saves, histograms of weights and gradients,
 * generated text, and a run's settings as text and for the hparams page. `tensorboard --logdir FOLDER` reads it while it
 * is written. Each sink begins a file of its own in the folder, so that one torn by a crash is never gone on with.
 * @param folder - of one run; made where it is not there
 * @throws what the file system says where nothing can be written there
 * @see docs/concepts/events.md
 */
export function tensorBoardSink(folder: string): EventSink {
  return new TensorBoardSink(folder);
}

/** Tells files apart that one process begins in one second. */
let numFiles = 0;

class TensorBoardSink implements EventSink {
  readonly #folder: string;
  readonly #scalars = new Map<string, KnownScalar>();
  readonly #knownHistograms = new Set<string>();
  #file: { readonly writer: BoundedWriter; readonly descriptor: number } | undefined;
  #step = 0;

  constructor(folder: string) {
    this.#folder = folder;
    makeFolder(folder);
    this.#open(stampMs());
  }

  write(event: TroupeEvent): void {
    if ("step" in event && event.kind !== "activity.finished") this.#step = event.step;
    const values = this.#fieldsOf(event);
    if (values.length > 0) this.#file?.writer.write(summaryRecord(event.timeMs, this.#step, values));
  }

  async close(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    await file.writer.flush();
    await closeDescriptor(file.descriptor);
  }

  #open(timeMs: number): void {
    const seconds = String(Math.floor(timeMs / 1000)).padStart(10, "0");
    const name = `events.out.tfevents.${seconds}.${hostname()}.${process.pid}.${numFiles++}`;
    const descriptor = openSync(join(this.#folder, name), "wx");
    this.#file = { writer: new BoundedWriter(descriptor, { everyMs: fileWriteMs }), descriptor };
    this.#file.writer.write(record(versionEvent(timeMs)));
  }

  #fieldsOf(event: TroupeEvent): readonly (Bytes | Uint8Array)[] {
    if (event.kind === "run.started") this.#step = event.firstStep;
    const points = pointsOf(event);
    return points.length > 0
      ? points.map((point) => this.#scalar(point))
      : this.#valuesOf(event).map((value) => valueField(value));
  }

  /** What is no scalar. */
  #valuesOf(event: TroupeEvent): Bytes[] {
    switch (event.kind) {
      case "run.started":
        return [sessionStart(settingsOf(event), event.timeMs), textValue("run", tableOf(settingsOf(event)))];
      case "run.finished":
        return [sessionEnd(true, event.timeMs)];
      case "run.failed":
        return [sessionEnd(false, event.timeMs), textValue("failure", event.error.message)];
      case "text.generated":
        return [textValue("sample", fenced(event.text))];
      case "histogram.measured":
        return [this.#histogram(`${event.of}/${event.name}`, event)];
      default:
        return [];
    }
  }

  #scalar({ group, name, rank, value }: Point): Bytes | Uint8Array {
    const tag = rank === undefined ? `${group}/${name}` : `${group}/rank_${rank}/${name}`;
    const known = this.#scalars.get(tag);
    if (known !== undefined) return known.at(value);
    this.#scalars.set(tag, new KnownScalar(tag));
    return valueField(scalarValue(tag, value, true));
  }

  #histogram(tag: string, event: EventOf<"histogram.measured">): Bytes {
    const isFirst = !this.#knownHistograms.has(tag);
    this.#knownHistograms.add(tag);
    return histogramValue(tag, event, isFirst);
  }
}

/** The choices of a run that others may be compared by. */
function settingsOf(run: EventOf<"run.started">): Record<string, string | number> {
  const { job, numRanks, mesh, zero, placement, precision, seed, numParameters, firstStep, steps } = run;
  return { job, numRanks, ...mesh, zero, placement, precision, seed, numParameters, firstStep, steps };
}

function tableOf(settings: Readonly<Record<string, string | number>>): string {
  const rows = Object.entries(settings).map(([name, value]) => `| ${name} | ${value} |`);
  return ["| | |", "|---|---|", ...rows].join("\n");
}

/** As it is, whatever Markdown would make of it: indented, which no text can end. */
function fenced(text: string): string {
  return text.replaceAll(/^/gm, "    ");
}
