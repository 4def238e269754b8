import type { Observable } from "rxjs";
import { ReplaySubject } from "rxjs/internal/ReplaySubject";
import type { WriteProgress, Written } from "./writer.ts";

/** Bytes that are durable so far. */
export type SaveProgress = Pick<WriteProgress, "writtenBytes" | "totalBytes">;

/** A checkpoint that is being written. Its tensors were copied, so the originals may change. */
export class Save {
  readonly step: number;
  /** Bytes written; completes when the save ends, with or without success. */
  readonly progress$: Observable<SaveProgress>;
  /**
   * Resolves when the checkpoint is durable and, with `verify`, has been read back; with undefined if it was skipped because
   * another was being written. Rejects with the first cause if it could not be saved.
   */
  readonly durable: Promise<Written | undefined>;
  readonly #progress = new ReplaySubject<SaveProgress>(1);
  #writtenBytes = 0;

  /** Created by the service. @param work - settles when the save has ended */
  constructor(step: number, work: Promise<Written | undefined>) {
    this.step = step;
    this.progress$ = this.#progress.asObservable();
    this.durable = work;
    const end = () => this.#progress.complete();
    // Without this, a failure of a save that no caller awaits would be an unhandled rejection; events report it.
    work.then(end, end);
  }

  /** Bytes written so far. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  report({ writtenBytes, totalBytes }: SaveProgress): void {
    this.#writtenBytes = writtenBytes;
    this.#progress.next({ writtenBytes, totalBytes });
  }
}
