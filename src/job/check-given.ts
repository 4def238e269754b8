import { addDefinition, noteOrigin } from "../errors/index.ts";

/** The user's function behind each function of a loaded job that wraps one. */
const written = new WeakMap<object, object>();

/** Remembers the user's function behind a wrapper. */
export function noteWritten(call: object, author: object): void {
  written.set(call, author);
}

/**
 * Checks a value that a job's function, `call` named `name`, has returned: an error shows the line where it is defined.
 * @throws errors of `check`
 */
export function checkGiven<T>(call: object, name: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    noteOrigin(error, { call: name });
    if (error instanceof Error) addDefinition(error, written.get(call) ?? call, name);
    throw error;
  }
}
