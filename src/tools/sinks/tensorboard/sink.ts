import { hostname } from "node:os";
import { join } from "node:path";
import {
  BoundedWriter,
  type EventSink,
  fileWriteMs,
  RecordFile,
  stampMs,
  type TellTrouble,
  type TroupeEvent,
} from "../../../job/events/index.ts";
import type { Bytes } from "../../../library/protobuf.ts";
import { curveOf, type Point, pointsOf } from "../curves.ts";
import { type Settings, settingsOf } from "../settings.ts";
import {
  histogramValue,
  KnownScalar,
  record,
  sessionEnd,
  sessionStart,
  summaryRecord,
  textValue,
  valueField,
  versionEvent,
} from "./summary.ts";

/**
 * Writes files for TensorBoard: scalars of steps, evaluations, memory and saves, histograms of weights and gradients,
 * generated text, and a run's settings as text and for the hparams page. `tensorboard --logdir FOLDER` can read them while they
 * are written. Each sink begins a new file in the folder and never appends to one that a crash may have torn.
 * @param folder - of one run; created if missing
 * @throws the file system's error if nothing can be written there
 * @see docs/guide/watch.md
 */
export function tensorBoardSink(folder: string): EventSink {
  return new TensorBoardSink(folder);
}

/** Distinguishes files that one process begins within a second. */
let numFiles = 0;

/** A name by TensorBoard's pattern: it reads a folder's files in order of their names. */
function fileName(): string {
  const seconds = String(Math.floor(stampMs() / 1000)).padStart(10, "0");
  return `events.out.tfevents.${seconds}.${hostname()}.${process.pid}.${numFiles++}`;
}

class TensorBoardSink implements EventSink {
  /** No deadline: the writer itself waits for slow disks and abandons them in time. */
  readonly closeDeadlineMs = Number.POSITIVE_INFINITY;
  readonly #scalars = new Map<string, KnownScalar>();
  readonly #writer: BoundedWriter;
  /** The record of the run's settings, repeated at the start of every later file. */
  #settings: Uint8Array = new Uint8Array();
  #step = 0;

  constructor(folder: string) {
    const file = RecordFile.open({ path: () => join(folder, fileName()), head: () => this.#head() });
    this.#writer = new BoundedWriter(file, { everyMs: fileWriteMs });
  }

  attach(tell: TellTrouble): void {
    this.#writer.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    if ("step" in event && event.kind !== "activity.finished") this.#step = event.step;
    const values = this.#fieldsOf(event);
    if (values.length === 0) return;
    const written = summaryRecord(event.timeMs, this.#step, values);
    if (event.kind === "run.started") this.#settings = written;
    this.#writer.write(written);
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  #head(): Uint8Array {
    return Buffer.concat([record(versionEvent(stampMs())), this.#settings]);
  }

  #fieldsOf(event: TroupeEvent): readonly (Bytes | Uint8Array)[] {
    if (event.kind === "run.started") this.#step = event.firstStep;
    const points = pointsOf(event);
    return points.length > 0
      ? points.map((point) => this.#scalar(point))
      : this.#valuesOf(event).map((value) => valueField(value));
  }

  /** Summary values of an event other than scalars. */
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
        return [histogramValue(`${event.of}/${event.name}`, event)];
      default:
        return [];
    }
  }

  #scalar(point: Point): Uint8Array {
    const tag = curveOf(point);
    let known = this.#scalars.get(tag);
    if (known === undefined) {
      known = new KnownScalar(tag);
      this.#scalars.set(tag, known);
    }
    return known.at(point.value);
  }
}

function tableOf(settings: Settings): string {
  const rows = Object.entries(settings).map(([name, value]) => `| ${name} | ${value} |`);
  return ["| | |", "|---|---|", ...rows].join("\n");
}

/** A text that Markdown shows unchanged: an indented block, which no text can end. */
function fenced(text: string): string {
  return text.replaceAll(/^/gm, "    ");
}
