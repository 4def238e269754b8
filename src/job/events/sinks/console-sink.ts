import type { TroupeEvent } from "../event.ts";
import type { EventSink } from "../hub/sink.ts";
import { describeEvent, type Tone } from "../words/describe-event.ts";
import { BoundedWriter, type TellTrouble } from "./bounded-writer.ts";
import { Progress } from "./progress.ts";

/** A stream that people watch: standard error or standard output. */
export interface ConsoleStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
  on?(event: "error", listener: () => void): unknown;
  listenerCount?(event: "error"): number;
}

/** Options of a console sink; those left out are read from the stream and the environment. */
export interface ConsoleSinkOptions {
  /** Default: standard error, so that standard output is free for results; never blocks, and holds up to a megabyte. */
  readonly stream?: ConsoleStream;
  /** Whether a progress line is redrawn in place. Default: on a terminal, unless `CI` is set or `TERM` is `dumb`. */
  readonly live?: boolean;
  /** Whether lines are coloured. Default: where the line is live, unless `NO_COLOR` is set. */
  readonly color?: boolean;
  /** Whether errors are shown with every frame and all causes. Default: where `TROUPE_DEBUG` is set. */
  readonly debug?: boolean;
  /** Whether the error that ends a run is shown. Set it to false where the program prints the error of `run`. */
  readonly failure?: boolean;
  /** Steps between two lines of progress where none is redrawn. Default: a line every five seconds. */
  readonly everySteps?: number | undefined;
  /** Milliseconds from any fixed point. */
  readonly clock?: () => number;
}

const STANDARD_ERROR = 2;
/** The most bytes held for a slow reader. */
const maxHeldBytes = 1 << 20;
/** At most ten redraws a second: more are not seen, and cost time. */
const redrawMs = 100;
/** Where nothing is redrawn, a line for each step would bury the rest. */
const plainLineMs = 5000;
/** Anomalies that are only reported come by hundreds where a loss is nearly zero: one of a kind per minute is enough. */
const anomalyPauseMs = 60_000;

const eraseLine = "\r\u001b[2K";
const colors: Readonly<Record<Tone, string>> = { plain: "", good: "\u001b[32m", bad: "\u001b[31m" };
const colorOff = "\u001b[0m";

/** Prints a run for people: a progress line, redrawn on a terminal, else every five seconds, and a line for each grave event. */
export function consoleSink(options: ConsoleSinkOptions = {}): EventSink {
  const { stream = process.stderr, clock = () => performance.now() } = options;
  const writer =
    options.stream === undefined
      ? new BoundedWriter(STANDARD_ERROR, { prompt: true, maxHeldBytes })
      : undefined;
  const { CI, NO_COLOR, TERM, TROUPE_DEBUG } = process.env;
  // Set to a non-empty value, as no-color.org says.
  const live = options.live ?? (stream.isTTY === true && !CI && TERM !== "dumb");
  const color = options.color ?? (live && !NO_COLOR);
  const { debug = isSet(TROUPE_DEBUG), failure = true, everySteps } = options;
  return new ConsoleSink({ stream, live, color, clock, debug, failure, everySteps, writer });
}

interface ConsoleParts extends Required<ConsoleSinkOptions> {
  /** Writes to standard error; undefined for a stream that the caller gave. */
  readonly writer: BoundedWriter | undefined;
}

/** Reads the variable as the runtime's option does. */
const isSet = (text = "") => text !== "" && text !== "0" && text !== "false";

class ConsoleSink implements EventSink {
  /** No deadline: its writer waits for slow readers and gives up in time. */
  readonly closeDeadlineMs = Number.POSITIVE_INFINITY;
  readonly #parts: ConsoleParts;
  #progress = new Progress();
  #shownAtMs = Number.NEGATIVE_INFINITY;
  #shownLine: string | undefined;
  #closed = false;
  /** For each kind of anomaly, when one was shown last, and how many were not shown since. */
  readonly #anomalies = new Map<string, { readonly atMs: number; numMore: number }>();

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    const { stream } = parts;
    // Without a listener, the error of a closed pipe or a full disk would end the process; with one, lines are lost.
    if (stream.listenerCount?.("error") === 0) stream.on?.("error", () => {});
  }

  attach(tell: TellTrouble): void {
    this.#parts.writer?.onTrouble(tell);
  }

  write(event: TroupeEvent): void {
    if (event.kind === "run.started") this.#progress.start(event.steps);
    if (event.kind === "step.finished") {
      this.#progress.update(event);
      if (this.#isDue(event.step)) this.#show();
      return;
    }
    if (event.kind === "run.finished" || event.kind === "run.failed") this.#leave();
    if (event.kind === "run.failed" && !this.#parts.failure) return;
    const description = describeEvent(event, { debug: this.#parts.debug });
    if (description === undefined) return;
    const since =
      event.kind === "anomaly.detected" && event.action === "told" ? this.#since(event.anomaly) : "";
    if (since === undefined) return;
    this.#above(this.#paint(description.text + since, description.tone));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#leave();
    await this.#parts.writer?.close();
  }

  /** Returns how many of this kind were not shown since the last, in words; undefined where it is too early for another. */
  #since(anomaly: string): string | undefined {
    const nowMs = this.#parts.clock();
    const last = this.#anomalies.get(anomaly);
    if (last !== undefined && nowMs - last.atMs < anomalyPauseMs) {
      last.numMore += 1;
      return undefined;
    }
    this.#anomalies.set(anomaly, { atMs: nowMs, numMore: 0 });
    return last === undefined || last.numMore === 0
      ? ""
      : ` (and ${last.numMore} more since the last one shown)`;
  }

  #isDue(step: number): boolean {
    const sinceMs = this.#parts.clock() - this.#shownAtMs;
    if (this.#parts.live) return sinceMs >= redrawMs;
    return this.#parts.everySteps === undefined
      ? sinceMs >= plainLineMs
      : step % this.#parts.everySteps === 0;
  }

  /** Prints the progress line, unless it is shown already. */
  #show(): void {
    const line = this.#progress.line();
    if (line === undefined || line === this.#shownLine) return;
    this.#shownAtMs = this.#parts.clock();
    this.#shownLine = line;
    this.#put(this.#parts.live ? eraseLine + this.#fit(line) : `${line}\n`);
  }

  /** Prints the progress line of the last step and leaves it: later lines come below it. */
  #leave(): void {
    this.#show();
    if (this.#parts.live && this.#shownLine !== undefined) this.#put("\n");
    this.#shownLine = undefined;
    this.#progress = new Progress();
  }

  /** Prints a line above the progress line, where there is one. */
  #above(text: string): void {
    if (!this.#parts.live || this.#shownLine === undefined) this.#put(`${text}\n`);
    else this.#put(`${eraseLine}${text}\n${this.#fit(this.#shownLine)}`);
  }

  #put(text: string): void {
    (this.#parts.writer ?? this.#parts.stream).write(text);
  }

  /** Cuts the line to the terminal's width: a wrapped line could not be erased. */
  #fit(line: string): string {
    return line.slice(0, Math.max(1, (this.#parts.stream.columns ?? 80) - 1));
  }

  #paint(text: string, tone: Tone): string {
    return this.#parts.color && tone !== "plain" ? colors[tone] + text + colorOff : text;
  }
}
