import type { GroupPlan } from "../compute/collectives/index.ts";
import { bindThread } from "../compute/tensor/index.ts";
import type { ExecutionPlan } from "./protocols/index.ts";

/**
 * Has this thread of a rank run where the plan wants it; before it starts any thread of its own.
 * @throws {TroupeError} what `bindThread` throws
 */
export function bindRank(rank: number, { bind, devices }: ExecutionPlan, { hosts }: GroupPlan): void {
  const near = [...devices.keys()].filter((other) => hosts?.[other] === hosts?.[rank]);
  bindThread(bind, near.indexOf(rank), near.length);
}
