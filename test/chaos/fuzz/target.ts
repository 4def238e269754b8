/** Something that takes untrusted bytes. */
export interface Target {
  readonly name: string;
  /** Inputs to begin with: good ones, and what attackers are known to try. */
  readonly corpus: readonly Uint8Array[];
  /** Where its code is: what of it an input reaches decides which inputs are kept. */
  readonly sources: RegExp;
  /** Takes an input in. Whatever it throws must be a `TroupeError` with one of `refusals`. */
  take(input: Uint8Array): void | Promise<void>;
  readonly refusals: readonly string[];
}
