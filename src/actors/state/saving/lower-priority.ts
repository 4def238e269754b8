import { constants, setPriority } from "node:os";
import { isMainThread } from "node:worker_threads";

/**
 * Lets this thread, and those that it starts from here on, give way to threads that compute. Linux has a priority for each
 * thread; elsewhere only whole processes have one, and nothing is done.
 */
export function lowerPriority(): void {
  if (process.platform === "linux" && !isMainThread) setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}
