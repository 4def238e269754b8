let fuses = true;

/** Whether modules call fused kernels where there are any. */
export function isFused(): boolean {
  return fuses;
}

/**
 * Runs a forward, in this thread, without fused kernels: norms, attention, activations and losses consist of libtorch's own
 * operators, as in eager PyTorch. It is the baseline for what the kernels gain. Recomputation in backward is not affected.
 */
export function unfused<T>(forward: () => T): T {
  const before = fuses;
  fuses = false;
  try {
    return forward();
  } finally {
    fuses = before;
  }
}
