let fuses = true;

/** Whether modules call the kernels that stand for several operators, where there is one. */
export function isFused(): boolean {
  return fuses;
}

/**
 * Runs a forward, in this thread, whose norms, attention, activations and losses are composed of libtorch's own operators, each
 * with its results in memory, as eager PyTorch has them: what kernels gain is told beside it. What is computed again in
 * backward is not among it.
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
