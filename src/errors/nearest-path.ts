import { type Dirent, existsSync, readdirSync } from "node:fs";
import { sep } from "node:path";
import { nearestName } from "./troupe-error.ts";

/**
 * The path that was meant by one that leads nowhere: the first of its parts that is not there exchanged for the nearest of what
 * is beside it, where the whole then is there.
 * @param isMeant - whether an entry can be what the last part is to name; all before it are folders
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

/** @returns "did you mean …?" for a path that leads nowhere, where something of nearly that name is there */
export function whichPathWasMeant(path: string): string | undefined {
  const near = nearestPath(path);
  return near === undefined ? undefined : `did you mean ${near}?`;
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // no folder, or not ours to read
  }
}
