/** Where of a job an error comes from, beside the lines of source. Plain data, so that it travels with the error. */
export interface ErrorOrigin {
  /** Path of the module of the model that was computing, such as `layers.2.attn.q`. */
  readonly module?: string;
  /** The function of a job or a dataset that was called, such as `loss`. */
  readonly call?: string;
}

const origins = new WeakMap<object, ErrorOrigin>();

/** Keeps with an error where it comes from; what is known of that already stays, since it was nearer. */
export function noteOrigin(error: unknown, origin: ErrorOrigin): void {
  if (typeof error === "object" && error !== null) origins.set(error, { ...origin, ...origins.get(error) });
}

/** @returns what is known of where an error comes from */
export function originOf(error: unknown): ErrorOrigin {
  return typeof error === "object" && error !== null ? (origins.get(error) ?? {}) : {};
}
