import type { EventOf } from "../event.ts";
import { formatBytes, formatCount, formatDuration, formatNamed } from "../words/figures.ts";

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
      `loss ${step.lossNats.toFixed(4)}${formatNamed({ ...step.losses, ...step.metrics })}`,
      step.tokensPerSecond === undefined
        ? `${formatCount(step.samplesPerSecond)} samples/s`
        : `${formatCount(step.tokensPerSecond)} tokens/s`,
      `overlap ${Math.round(100 * step.overlap)} %`,
      formatBytes(step.residentBytes),
    ];
    if (total !== undefined) {
      parts.push(`ETA ${formatDuration(Math.max(0, total - step.step) * (this.#meanDurationMs ?? 0))}`);
    }
    return parts.join("  ");
  }
}
