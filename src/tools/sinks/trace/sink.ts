import {
  BoundedWriter,
  type EventOf,
  type EventSink,
  fileWriteMs,
  RecordFile,
  stampMs,
  type TellTrouble,
  type TroupeEvent,
} from "../../../job/events/index.ts";
import { Arrows } from "./arrows.ts";
import { Lanes } from "./lanes.ts";
import { microseconds, processName, slice, type TraceEvent } from "./trace-event.ts";

/**
 * Writes a run as a trace for ui.perfetto.dev or chrome://tracing: a process for each rank, lanes for every actor, an arrow from each
 * message's sender to its handler, and counters of loss, speed and memory. Spawn the run with `trace: true`, or the trace is nearly
 * empty. Entries are written when they end, and the file may end anywhere, so the trace of a killed run can be opened.
 * @param path - of the file, which is overwritten; its folder is created if missing
 * @throws the file system's error if it cannot be written
 */
export function chromeTraceSink(path: string): EventSink {
  return new ChromeTraceSink(path);
}

class ChromeTraceSink implements EventSink {
  /** No deadline: the writer itself waits for slow disks and abandons them in time. */
  readonly closeDeadlineMs = Number.POSITIVE_INFINITY;
  readonly #writer: BoundedWriter;
  /** Names of processes and lanes so far, with which a new file begins. Thanks to the first all other entries begin with a comma. */
  readonly #names: TraceEvent[] = processName(0, "run");
  readonly #lanes = new Lanes((event) => this.#emit(event));
  readonly #arrows = new Arrows((event) => this.#emit(event));
  /** Reading of the machine's clock, which times activities, at time 0 of the trace. */
  readonly #originMs = Number(process.hrtime.bigint()) / 1e6;
  /** Difference between that clock and `timeMs`. */
  #clockShiftMs = this.#originMs - stampMs();
  #closed = false;

  constructor(path: string) {
    const file = RecordFile.open({ path: () => path, head: () => this.#head() });
    this.#writer = new BoundedWriter(file, {
      everyMs: fileWriteMs,
      notice: (numLost) => entry(this.#lossOf(numLost)),
    });
  }

  attach(tell: TellTrouble): void {
    this.#writer.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    switch (event.kind) {
      case "run.started":
        this.#clockShiftMs = event.clockMs - event.timeMs;
        this.#moment(event, `${event.job} begins`);
        break;
      case "activity.finished":
        this.#activity(event);
        break;
      case "message.handled":
        this.#message(event);
        break;
      case "step.finished":
        this.#count(event, "loss", { nats: event.lossNats });
        this.#count(
          event,
          "speed",
          event.tokensPerSecond === undefined
            ? { "samples/s": event.samplesPerSecond }
            : { "tokens/s": event.tokensPerSecond },
        );
        break;
      case "memory.measured":
        this.#memory(event);
        break;
      case "checkpoint.saved":
        this.#save(event);
        break;
      case "block.recorded": {
        const { block, forward, backward } = event;
        const operators = { forward: forward.operators, backward: backward.operators };
        this.#moment(event, `${block} became a program`, operators);
        break;
      }
      case "actor.failed":
      case "actor.restarted":
        this.#moment(event, `${event.actor} ${event.kind.slice("actor.".length)}`);
        break;
      case "evaluation.finished":
      case "checkpoint.failed":
      case "anomaly.detected":
      case "run.finished":
      case "run.failed":
        this.#moment(event, event.kind);
        break;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#writer.write("\n]\n");
    await this.#writer.close();
  }

  #activity({
    actor,
    role,
    activity,
    step,
    blockIndex,
    microBatchIndex,
    beginMs,
    endMs,
  }: EventOf<"activity.finished">): void {
    // Marks only the end of a wait.
    if (activity === "compute") return;
    const isOwn = role === "rank";
    const interval = { beginMs, endMs };
    const lane = this.#lanes.place(actor, isOwn ? "" : activity, interval, isOwn);
    const subject = microBatchIndex ?? (blockIndex < 0 ? undefined : `block ${blockIndex}`);
    const name = [activity, subject].filter((part) => part !== undefined).join(" ");
    this.#emit(slice(lane, name, this.#onTrace(interval), { step: step + 1 }, activity));
  }

  #message(span: EventOf<"message.handled">): void {
    const { actor, messageKind, awaited, from, sentMs, receivedMs, beginMs, traceId } = span;
    // The conductor only awaits: its steps need no lane beside an empty one.
    const subject = awaited && actor !== "system" ? "awaiting" : "";
    const lane = this.#lanes.place(actor, subject, span, !awaited);
    const args = {
      from,
      underWayMs: toMicrosecond(receivedMs - sentMs),
      queuedMs: toMicrosecond(beginMs - receivedMs),
      trace: traceId,
    };
    const interval = this.#onTrace(span);
    this.#emit(slice(lane, messageKind, interval, args, awaited ? "awaiting" : "message"));
    this.#arrows.placed(span, lane, sentMs - this.#originMs, interval.beginMs);
  }

  #save({ timeMs, durationMs, step, path, sizeBytes }: EventOf<"checkpoint.saved">): void {
    const endMs = timeMs + this.#clockShiftMs;
    const interval = { beginMs: endMs - durationMs, endMs };
    const lane = this.#lanes.place("checkpointer", "saving", interval, false);
    this.#emit(slice(lane, `save step ${step}`, this.#onTrace(interval), { path, sizeBytes }, "save"));
  }

  #memory(event: EventOf<"memory.measured">): void {
    const bytes = Object.entries(event.byKind).map(([kind, { liveBytes }]) => [kind, liveBytes]);
    this.#count(event, "memory", Object.fromEntries(bytes), event.rank + 1);
  }

  #count({ timeMs }: TroupeEvent, name: string, args: Readonly<Record<string, number>>, pid = 0): void {
    // Traces cannot hold numbers that are not finite.
    const finite = Object.fromEntries(Object.entries(args).filter(([, value]) => Number.isFinite(value)));
    this.#emit({ name, ph: "C", pid, tid: 0, ts: this.#at(timeMs), args: finite });
  }

  #moment({ timeMs, kind }: TroupeEvent, name: string, args?: TraceEvent["args"]): void {
    this.#emit({
      name,
      cat: kind,
      ph: "i",
      pid: 0,
      tid: 0,
      ts: this.#at(timeMs),
      s: "g",
      ...(args && { args }),
    });
  }

  #at(timeMs: number): number {
    return microseconds(timeMs + this.#clockShiftMs - this.#originMs);
  }

  #onTrace({ beginMs, endMs }: { readonly beginMs: number; readonly endMs: number }): {
    beginMs: number;
    endMs: number;
  } {
    return { beginMs: beginMs - this.#originMs, endMs: endMs - this.#originMs };
  }

  #emit(event: TraceEvent): void {
    if (event.ph === "M") this.#names.push(event);
    this.#writer.write(entry(event));
  }

  #head(): Uint8Array {
    return Buffer.from(`[\n${this.#names.map((name) => JSON.stringify(name)).join(",\n")}`);
  }

  #lossOf(numLost: number): TraceEvent {
    const ts = this.#at(stampMs());
    return { name: `${numLost} entries are missing`, cat: "output", ph: "i", pid: 0, tid: 0, ts, s: "g" };
  }
}

/** Formats an entry that follows others. */
const entry = (event: TraceEvent): string => `,\n${JSON.stringify(event)}`;

/** Rounds milliseconds to microseconds: more digits would be half of each line. */
const toMicrosecond = (ms: number): number => Math.round(1000 * ms) / 1000;
