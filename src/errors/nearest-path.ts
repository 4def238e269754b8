import { type Dirent, existsSync, readdirSync } from "node:fs";
import { sep } from "node:path";
import { nearestName } from "./troupe-error.ts";

/**
 * Corrects a path that does not exist: replaces its first missing part by the nearest name in the same folder. Undefined if
 * the corrected path does not exist either.
 * @param isMeant - whether an entry may stand for the last part; all parts before it are folders
 */
export function nearestPath(
  path: string,
  isMeant: (entry: Dirent) => boolean = () => true,
): string | undefined {
  const parts = path.split(sep);
  const missing = parts.findIndex((_, index) => !existsSync(parts.slice(0, index + 1).join(sep) || sep));
  const name = parts[missing];
  if (name === undefined) return undefined;
  const [above, below] = [parts.slice(0, missing), parts.slice(missing + 1)];
  const isLast = below.every((part) => part === "");
  const folder = above.join(sep) || (path.startsWith(sep) ? sep : ".");
  const names = entriesOf(folder).filter((entry) => (isLast ? isMeant(entry) : entry.isDirectory()));
  const near = nearestName(
    name,
    names.map((entry) => entry.name),
  );
  if (near === undefined) return undefined;
  const meant = [...above, near, ...below].join(sep);
  return existsSync(meant) ? meant : undefined;
}

/** Says "did you mean …?" for a path that does not exist, if one of nearly the same name does. */
export function whichPathWasMeant(path: string): string | undefined {
  const near = nearestPath(path);
  return near === undefined ? undefined : `did you mean ${near}?`;
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // not a folder, or not readable
  }
}
