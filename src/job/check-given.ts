import { addDefinition, noteOrigin } from "../errors/index.ts";

/** Of the functions of a loaded job, which tell where an error was thrown: those that its author wrote. */
const written = new WeakMap<object, object>();

/** Keeps with a function of a loaded job the one that its author wrote. */
export function noteWritten(call: object, author: object): void {
  written.set(call, author);
}

/**
 * Checks what a function of a job has given. An error shows the line on which the function is written: what it gave has passed none.
 * @param call - the function
 * @param name - of it, in the job
 * @throws what `check` throws
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
