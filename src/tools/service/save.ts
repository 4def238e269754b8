import type { Observable } from "rxjs";
import { ReplaySubject } from "rxjs/internal/ReplaySubject";
import type { WriteProgress, Written } from "./writer.ts";

/** How much of a save is durable so far. */
export type SaveProgress = Pick<WriteProgress, "writtenBytes" | "totalBytes">;

/** A checkpoint that is being written. Its tensors were copied, so the originals may change. */
export class Save {
  readonly step: number;
  /** How much is written; completes with the save, whether it succeeds or not. */
  readonly progress$: Observable<SaveProgress>;
  /**
   * Resolves when the checkpoint is durable and, with `verify`, has been read back; with undefined if it was skipped because
   * another was being written. Rejects with the first cause if it could not be saved.
   */
  readonly durable: Promise<Written | undefined>;
  readonly #progress = new ReplaySubject<SaveProgress>(1);
  #writtenBytes = 0;

  /** Made by the service: `work` writes it. */
  constructor(step: number, work: Promise<Written | undefined>) {
    this.step = step;
    this.progress$ = this.#progress.asObservable();
    this.durable = work;
    const end = () => this.#progress.complete();
    // Whoever does not wait for it learns of a failure from the events.
    work.then(end, end);
  }

  /** Bytes that are written so far. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Reports more progress. */
  report({ writtenBytes, totalBytes }: SaveProgress): void {
    this.#writtenBytes = writtenBytes;
    this.#progress.next({ writtenBytes, totalBytes });
  }
}
