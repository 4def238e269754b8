import { constants, setPriority } from "node:os";
import { isMainThread } from "node:worker_threads";

/**
 * Lowers the priority of this thread, and of those that it starts from here on, below threads that compute. Linux has a
 * priority for each thread; elsewhere only processes have one, and nothing is done.
 */
export function lowerPriority(): void {
  if (process.platform === "linux" && !isMainThread) setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}
