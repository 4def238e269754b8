import { forkSupport } from "../../../src/compute/tensor/index.ts";
import type { ProcessSupport } from "../../../src/runtime/index.ts";
import { processes as ofPreload } from "./preload.ts";

/** Names an addon for forks that is not there. */
export const processes: ProcessSupport = {
  ...ofPreload,
  forks: () => ({ library: "", ...forkSupport(), addon: "/nowhere/troupe.node" }),
};
