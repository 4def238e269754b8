/** The module and the function of a job that an error comes from. Plain data, so that it travels with the error. */
export interface ErrorOrigin {
  /** Path of the module of the model that was computing, such as `layers.2.attn.q`. */
  readonly module?: string;
  /** The function of a job or a dataset that was called, such as `loss`. */
  readonly call?: string;
}

const origins = new WeakMap<object, ErrorOrigin>();

/** Notes where an error comes from. A value noted before stays, because it was noted nearer to the mistake. */
export function noteOrigin(error: unknown, origin: ErrorOrigin): void {
  if (typeof error === "object" && error !== null) origins.set(error, { ...origin, ...origins.get(error) });
}

/** Returns the noted origin of an error; empty where none was noted. */
export function originOf(error: unknown): ErrorOrigin {
  return typeof error === "object" && error !== null ? (origins.get(error) ?? {}) : {};
}
