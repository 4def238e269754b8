import type { Failure } from "../protocol/failure.ts";

/** An error as it was in its own process, with whatever code it had. */
export function errorOf({ name, message, code, stack }: Failure): Error {
  const error = Object.assign(new Error(message), { name }, code === undefined ? {} : { code });
  if (stack !== undefined) error.stack = stack;
  return error;
}
