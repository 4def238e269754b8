import type { GroupPlan } from "../compute/collectives/index.ts";
import { bindThread } from "../compute/tensor/index.ts";
import type { ExecutionSettings } from "../job/options/index.ts";

/**
 * Has this thread of a rank run where the plan wants it; before it starts any thread of its own.
 * @throws {TroupeError} what `bindThread` throws
 */
export function bindRank(rank: number, { bind, devices }: ExecutionSettings, { hosts }: GroupPlan): void {
  const near = [...devices.keys()].filter((other) => hosts?.[other] === hosts?.[rank]);
  bindThread(bind, near.indexOf(rank), near.length);
}
