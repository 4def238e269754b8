import { join } from "node:path";
import { accessTargets } from "./access-targets.ts";
import { fileTargets } from "./file-targets.ts";
import { openServiceTarget } from "./service-target.ts";
import type { Target } from "./target.ts";
import { wireTargets } from "./wire-targets.ts";

/** Everything that takes untrusted bytes, ready to take them. */
export interface OpenTargets extends AsyncDisposable {
  readonly all: readonly Target[];
}

/** @param folder - for files that some of them keep; each makes it when needed */
export async function openTargets(folder: string): Promise<OpenTargets> {
  const service = await openServiceTarget(join(folder, "service"));
  return {
    all: [...fileTargets, ...wireTargets, ...accessTargets(join(folder, "access")), service],
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
