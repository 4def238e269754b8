/** A worker's module, whose default export maps a part, and the data that its threads begin with. */
export interface PoolOptions {
  /** URL of the module. */
  readonly filename: string;
  readonly workerData: object;
  readonly numThreads: number;
}

/** Maps parts in a pool of threads, in order. At most two parts per thread are in flight: reading is never far ahead. */
export async function* mapInPool<Part, Result>(
  parts: AsyncIterable<Part>,
  { filename, workerData, numThreads }: PoolOptions,
): AsyncGenerator<{ readonly part: Part; readonly result: Result }> {
  const { Piscina } = await import("piscina");
  const pool = new Piscina<Part, Result>({
    filename,
    // Threads that block in Atomics.wait hold up the teardown of an addon loaded in the process.
    atomics: "async",
    minThreads: numThreads,
    maxThreads: numThreads,
    workerData,
  });
  const inFlight: { part: Part; result: Promise<Result> }[] = [];
  const next = async () => {
    const { part, result } = inFlight.shift() as (typeof inFlight)[number];
    return { part, result: await result };
  };
  try {
    for await (const part of parts) {
      const result = pool.run(part);
      // It may never be awaited; the first failure is reported.
      result.catch(() => {});
      inFlight.push({ part, result });
      if (inFlight.length >= 2 * numThreads) yield await next();
    }
    while (inFlight.length > 0) yield await next();
  } finally {
    await pool.destroy();
  }
}
