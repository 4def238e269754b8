import { addDefinition, noteOrigin } from "../errors/index.ts";

/** The function as its author wrote it, by the function of the loaded job that wraps it. */
const written = new WeakMap<object, object>();

/** Remembers the author's function that a function of a loaded job wraps. */
export function noteWritten(call: object, author: object): void {
  written.set(call, author);
}

/**
 * Checks the value that a function of a job has returned. Since that value passed no line of its own, an error shows
 * the line on which the function is written.
 * @param call - the function
 * @param name - its name in the job
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
