import type { Failure } from "../protocol/failure.ts";

/** Turns a failure back into the error that it was in its own process, with its own code. */
export function errorOf({ name, message, code, stack }: Failure): Error {
  const error = Object.assign(new Error(message), { name }, code === undefined ? {} : { code });
  if (stack !== undefined) error.stack = stack;
  return error;
}
