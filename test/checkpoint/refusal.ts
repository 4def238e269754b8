import type { TroupeError } from "../../src/errors/index.ts";

/** The error that `body` throws or rejects with; fails when it does neither. */
export async function refusal(body: () => unknown): Promise<TroupeError> {
  try {
    await body();
  } catch (error) {
    return error as TroupeError;
  }
  throw new Error("expected a refusal");
}
