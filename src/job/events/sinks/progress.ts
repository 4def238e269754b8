import type { EventOf } from "../event.ts";
import { figuresOf } from "../figures.ts";
import { formatDuration, formatFigure, formatNamed } from "../words/format.ts";

/** Weight of the newest step in the smoothed duration of a step. */
const smoothing = 0.05;

/** Follows a run and formats its progress as one line: step, loss, metrics, speed, overlap, memory, time left. */
export class Progress {
  #numSteps: number | undefined;
  #meanDurationMs: number | undefined;
  #latest: EventOf<"step.finished"> | undefined;

  /** @param numSteps - steps in all, for the time left */
  start(numSteps: number): void {
    this.#numSteps = numSteps;
  }

  update(step: EventOf<"step.finished">): void {
    const mean = this.#meanDurationMs ?? step.durationMs;
    this.#meanDurationMs = mean + smoothing * (step.durationMs - mean);
    this.#latest = step;
  }

  /** The line, without a line break; undefined before the first step. */
  line(): string | undefined {
    const step = this.#latest;
    if (step === undefined) return undefined;
    const total = this.#numSteps;
    const parts = [
      total === undefined
        ? `step ${step.step}`
        : `step ${String(step.step).padStart(String(total).length)}/${total}`,
    ];
    for (const { line, unit, read } of figuresOf(step.kind)) {
      if (line === undefined || (unit === "samples/s" && step.tokensPerSecond !== undefined)) continue;
      for (const { value, labels } of read(step)) {
        if (labels.name === undefined) parts.push(`${line} ${formatFigure(value, unit)}`.trimStart());
        else parts.push(`${parts.pop()}${formatNamed({ [labels.name]: value })}`);
      }
    }
    if (total !== undefined)
      parts.push(`ETA ${formatDuration(Math.max(0, total - step.step) * (this.#meanDurationMs ?? 0))}`);
    return parts.join("  ");
  }
}
