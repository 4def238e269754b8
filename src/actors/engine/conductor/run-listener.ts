/** Receives a run's progress to steer it by. Events report the same and steer nothing: they may be left out or sampled. */
export interface RunListener {
  /** `step` steps are made and reviewed; the last had the loss `lossNats`, and took `durationMs`. */
  stepMade(step: number, lossNats: number, durationMs: number): void;
  /** The state after `step` steps is about to be written. */
  saveBegun(step: number): void;
  /** The state after `step` steps is written, or if `path` is undefined, complete in memory. */
  saved(save: { readonly step: number; readonly path: string | undefined }): void;
  /** The state after `step` steps will not be written, although its save had begun. */
  saveFailed(step: number): void;
}
