/**
 * Every error Troupe throws on purpose: a code and what it means, one line each, sorted by room.
 * `docs/reference/errors.md` lists the same codes; a test compares the two.
 */
export const errorTable = {
  // cli
  USAGE: "the command line cannot be understood",
} as const;

/** A code of {@link errorTable}. */
export type ErrorCode = keyof typeof errorTable;

/** What an error carries beside its message. */
export interface ErrorDetail {
  /** The operands of the mistake, plain data, so that they can travel in a message. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** The first cause, kept reachable. */
  readonly cause?: unknown;
}

/**
 * An error that says where it happened, what was expected, what came and what to do:
 * `[where] expected: got (what to do)`.
 */
export class TroupeError extends Error {
  readonly code: ErrorCode;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? {} : { cause: detail.cause });
    this.name = "TroupeError";
    this.code = code;
    this.fields = detail.fields ?? {};
  }
}
