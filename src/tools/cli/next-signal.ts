/** Waits for the first signal to end; a second of its kind ends the process at once. */
export function nextSignal(): Disposable & { readonly heard: Promise<void> } {
  const { promise: heard, resolve } = Promise.withResolvers<void>();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const hear = () => resolve();
  for (const signal of signals) process.once(signal, hear);
  return {
    heard,
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, hear);
    },
  };
}
