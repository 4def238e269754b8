import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { reportError, type TellTrouble } from "../../../job/events/index.ts";

/** Counts the spans that a collector takes, and tells when it takes none. */
export class Deliveries {
  readonly #output: string;
  #tell: TellTrouble = () => {};
  /** Ended, and neither taken nor known to be lost: what waits is bounded, and the newest go beyond that. */
  #numOpen = 0;
  #numLost = 0;
  #error: Error | undefined;

  /** @param output - what people call the collector */
  constructor(output: string) {
    this.#output = output;
  }

  onTrouble(tell: TellTrouble): void {
    this.#tell = tell;
  }

  /** A span has ended, and is on its way. */
  begun(): void {
    this.#numOpen++;
  }

  /** The same exporter, counted. */
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

  /** No more is sent: what is on its way still is lost. */
  end(): void {
    const numLost = this.#numLost + this.#numOpen;
    const error = this.#error ?? new Error("it was slower than they came");
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
