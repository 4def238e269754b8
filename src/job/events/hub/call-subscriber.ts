/** Receives what a subscriber has thrown, or what its promise was rejected with. */
export type ReportFailure = (error: unknown) => void;

/**
 * Calls a function of a subscriber's: nothing that it throws, and no rejection of the promise that it may return, gets out.
 * @param onFailure - receives the error
 * @returns a promise that resolves once the function has ended, where it returned a promise; undefined where it has ended
 */
export function callSubscriber(body: () => unknown, onFailure: ReportFailure): Promise<void> | undefined {
  try {
    const result = body();
    if (!isThenable(result)) return undefined;
    // A promise of another library, or of another realm, is no `Promise` of this one.
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
