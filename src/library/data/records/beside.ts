// Work that other threads do.
import { TroupeError } from "../../../errors/index.ts";

/** An error of another thread. Plain data. */
export type Relayed = Pick<TroupeError, "code" | "message" | "fields">;

/** Returns the error of `body` as plain data, if it is a sentence of ours. */
export async function relayed<T>(body: () => Promise<T>): Promise<T | Relayed> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    const { code, message, fields } = error;
    return { code, message, fields };
  }
}

/** Threads that have had nothing to do for so long end. */
const IDLE_MS = 1_000;

/**
 * Makes a function that another thread's runs, of a pool that starts at the first call.
 * @param worker - its module, whose default export replies with {@link relayed}
 */
export function pooled<Request, Reply extends object>(
  worker: URL,
  numThreads: number,
): (request: Request) => Promise<Reply> {
  const start = async () => {
    const { Piscina } = await import("piscina");
    return new Piscina<Request, Reply | Relayed>({
      filename: worker.href,
      // Threads that block in Atomics.wait hold up the teardown of an addon loaded in the process.
      ...{ atomics: "async", minThreads: 0, maxThreads: numThreads, idleTimeout: IDLE_MS },
    });
  };
  let pool: ReturnType<typeof start> | undefined;
  return async (request) => {
    pool ??= start();
    const reply = await (await pool).run(request);
    if ("code" in reply) throw new TroupeError(reply.code, { relayed: reply.message, fields: reply.fields });
    return reply;
  };
}
