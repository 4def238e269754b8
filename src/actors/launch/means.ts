import { availableParallelism, totalmem } from "node:os";
import { deviceCount } from "../../compute/tensor/index.ts";
import type { HostMeans } from "../../runtime/index.ts";

/** Returns the memory and devices that a run may use on this host. */
export function ownMeans(): HostMeans {
  // cgroup limit; 0 or larger than RAM when there is none.
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const devices = Array.from({ length: deviceCount("cuda") }, (_, number) => `cuda:${number}`);
  return { numCores: availableParallelism(), memoryBytes, devices };
}
