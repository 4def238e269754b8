/**
 * Who steers a run hears of its progress by this. Events tell others of the same, and steer nothing: one may be left out,
 * sampled or renamed, and the run goes on as it would have.
 */
export interface RunListener {
  /** So many steps are made and found in order; the last came to `lossNats`, and took `durationMs`. */
  stepMade(step: number, lossNats: number, durationMs: number): void;
  /** The state after so many steps is about to be written. */
  saveBegun(step: number): void;
  /** It is written, or where `path` is undefined whole in memory. */
  saved(save: { readonly step: number; readonly path: string | undefined }): void;
  /** It is neither, and will not be. */
  saveFailed(step: number): void;
}
