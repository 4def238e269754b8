import { forkSupport } from "../../../src/compute/tensor/index.ts";
import type { ProcessSupport } from "../../../src/runtime/index.ts";
import { processes as ofPreload } from "./preload.ts";

/** Names a library for forks that is not there. */
export const processes: ProcessSupport = {
  ...ofPreload,
  forks: () => ({ addon: "", ...forkSupport(), library: "/nowhere/fork-server.so" }),
};
