// The types of ownership.mjs for src/, whose compiler reads no JavaScript.
import type { Stats } from "node:fs";

export function whyForeign(
  stats: Pick<Stats, "uid" | "gid" | "mode">,
  options?: { readonly secret?: boolean },
): string | undefined;
export function whyUnsafe(path: string): string | undefined;
export function makeOwnFolder(path: string): string | undefined;
export function userCache(): string;
export function compileCache(named?: string): string | undefined;
export function temporaryFolder(options?: { readonly inMemory?: boolean }): {
  readonly path: string;
  readonly reason: string | undefined;
};
