import type { Module } from "./module.ts";

/** Runs `body` with `root` and all its modules in evaluation mode, then restores the mode of each. */
export function evaluating<T>(root: Module, body: () => T): T {
  const modes = [...root.namedModules().values()].map((module) => ({ module, training: module.training }));
  root.eval();
  try {
    return body();
  } finally {
    for (const { module, training } of modes) module.training = training;
  }
}
