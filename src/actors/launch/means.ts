import { availableParallelism, totalmem } from "node:os";
import { deviceCount } from "../../compute/tensor/index.ts";
import type { HostMeans } from "../../runtime/index.ts";

/** @returns what this host has for a run, as far as this process may use it */
export function ownMeans(): HostMeans {
  // Of a container, whose limit may be far below what the machine has; 0 or more than that where there is none.
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const devices = Array.from({ length: deviceCount("cuda") }, (_, number) => `cuda:${number}`);
  return { numCores: availableParallelism(), memoryBytes, devices };
}
