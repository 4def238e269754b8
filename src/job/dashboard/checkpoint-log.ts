import type { TroupeEvent } from "../events/index.ts";
import type { CheckpointPart, CheckpointsPart } from "./frame.ts";

const maxLatest = 12;

/** How saving goes: the latest saves, and how many there were. */
export class CheckpointLog {
  #latest: CheckpointPart[] = [];
  #numSaved = 0;
  #numFailed = 0;
  #numSkipped = 0;

  /** @returns whether it changed anything */
  take(event: TroupeEvent): boolean {
    switch (event.kind) {
      case "checkpoint.started":
        return this.#note({ step: event.step, state: "saving", startedAtMs: event.timeMs });
      case "checkpoint.progressed": {
        const { writtenBytes, totalBytes } = event;
        return this.#note({ ...this.#begun(event), writtenBytes, totalBytes });
      }
      case "checkpoint.saved": {
        const { path, sizeBytes: totalBytes, durationMs } = event;
        this.#numSaved++;
        const writtenBytes = totalBytes;
        return this.#note({
          ...this.#begun(event),
          state: "saved",
          path,
          durationMs,
          writtenBytes,
          totalBytes,
        });
      }
      case "checkpoint.failed":
        this.#numFailed++;
        return this.#note({ ...this.#begun(event), state: "failed", reason: event.error.message });
      case "checkpoint.skipped":
        this.#numSkipped++;
        return this.#note({ ...this.#begun(event), state: "skipped", reason: event.reason });
      case "run.failed":
      case "run.finished":
        return this.#abandon();
      default:
        return false;
    }
  }

  part(): CheckpointsPart {
    return {
      numSaved: this.#numSaved,
      numFailed: this.#numFailed,
      numSkipped: this.#numSkipped,
      latest: this.#latest,
    };
  }

  clear(): void {
    this.#latest = [];
    this.#numSaved = 0;
    this.#numFailed = 0;
    this.#numSkipped = 0;
  }

  #begun({ step, timeMs }: { readonly step: number; readonly timeMs: number }): CheckpointPart {
    const begun = this.#latest.find((one) => one.step === step && one.state === "saving");
    return begun ?? { step, state: "saving", startedAtMs: timeMs };
  }

  /** Steps rise, but for a run that was set back, which saves its steps again. */
  #note(checkpoint: CheckpointPart): boolean {
    const others = this.#latest.filter(({ step }) => step !== checkpoint.step);
    this.#latest = [...others, checkpoint].slice(-maxLatest);
    return true;
  }

  /** A save that was under way when its run ended never becomes whole. */
  #abandon(): boolean {
    const numLatest = this.#latest.length;
    this.#latest = this.#latest.filter(({ state }) => state !== "saving");
    return this.#latest.length < numLatest;
  }
}
