import { forkSupport } from "../../../src/compute/tensor/index.ts";
import type { ProcessSupport } from "../../../src/runtime/index.ts";
import { processes as ofPreload } from "./preload.ts";

/** `library` or `addon`, by this module's query. */
const missing = new URL(import.meta.url).search.slice(1);

/** Names a file for forks that is not there. */
export const processes: ProcessSupport = {
  ...ofPreload,
  forks: () => ({ library: "", addon: "", ...forkSupport(), [missing]: "/nowhere/file.so" }),
};
