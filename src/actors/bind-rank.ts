import type { GroupPlan } from "../compute/collectives/index.ts";
import { bindThread } from "../compute/tensor/index.ts";
import type { ExecutionSettings } from "../job/options/index.ts";

/** Binds this thread of a rank to its cores by the plan, before it starts threads of its own. @throws errors of `bindThread` */
export function bindRank(rank: number, { bind, devices }: ExecutionSettings, { hosts }: GroupPlan): void {
  const near = [...devices.keys()].filter((other) => hosts?.[other] === hosts?.[rank]);
  bindThread(bind, near.indexOf(rank), near.length);
}
