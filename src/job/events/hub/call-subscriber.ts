/** Receives an error that a subscriber threw, or that its promise was rejected with. */
export type ReportFailure = (error: unknown) => void;

/**
 * Calls a subscriber's function. Its errors, thrown or by a rejected promise, go to `onFailure` and no further.
 * @returns a promise that resolves once the function's promise has settled; undefined where it returned none
 */
export function callSubscriber(body: () => unknown, onFailure: ReportFailure): Promise<void> | undefined {
  try {
    const result = body();
    if (!isThenable(result)) return undefined;
    // A promise of another library or realm is not an instance of this `Promise`.
    return Promise.resolve(result).then(() => {}, onFailure);
  } catch (error) {
    onFailure(error);
    return undefined;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayBe = (typeof value === "object" && value !== null) || typeof value === "function";
  return mayBe && typeof (value as { readonly then?: unknown }).then === "function";
}
