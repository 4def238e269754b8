import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { reportError, type TellTrouble } from "../../../job/events/index.ts";

/** Counts the spans that a collector accepts, and reports when it accepts none. */
export class Deliveries {
  readonly #output: string;
  #tell: TellTrouble = () => {};
  /** Spans that ended and were neither accepted nor reported lost; the exporter drops the newest when its queue is full. */
  #numOpen = 0;
  #numLost = 0;
  #error: Error | undefined;

  /** @param output - name of the collector in messages */
  constructor(output: string) {
    this.#output = output;
  }

  onTrouble(tell: TellTrouble): void {
    this.#tell = tell;
  }

  /** Counts a span that has ended and will be sent. */
  begun(): void {
    this.#numOpen++;
  }

  /** Wraps an exporter to count its results. */
  counting(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          const failure = result.code === SUCCESS ? undefined : (result.error ?? new Error("it was refused"));
          this.#settled(spans.length, failure);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }

  /** Reports spans that were not delivered as lost; no more are sent. */
  end(): void {
    const numLost = this.#numLost + this.#numOpen;
    const error = this.#error ?? new Error("it was slower than the spans came");
    this.#error = undefined;
    this.#numLost = 0;
    this.#numOpen = 0;
    if (numLost > 0)
      this.#tell({ kind: "output.failed", output: this.#output, error: reportError(error), numLost });
  }

  #settled(numSpans: number, failure: Error | undefined): void {
    this.#numOpen -= numSpans;
    if (failure === undefined) {
      const numLost = this.#numLost;
      if (this.#error !== undefined) this.#tell({ kind: "output.resumed", output: this.#output, numLost });
      this.#error = undefined;
      this.#numLost = 0;
      return;
    }
    this.#numLost += numSpans;
    if (this.#error === undefined)
      this.#tell({ kind: "output.failed", output: this.#output, error: reportError(failure) });
    this.#error = failure;
  }
}

/** `ExportResultCode.SUCCESS`. */
const SUCCESS = 0;
