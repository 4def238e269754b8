import { readFileSync } from "node:fs";

const kinds = ["RssAnon", "RssFile", "RssShmem"] as const;

/**
 * Returns the resident memory of processes, in bytes. Files and shared memory that several of them map are counted once, at
 * their largest.
 */
export function residentBytes(pids: readonly number[]): number {
  const held = pids.map(heldBy);
  const most = (kind: (typeof kinds)[number]): number => Math.max(...held.map((bytes) => bytes[kind]));
  return held.reduce((sum, { RssAnon }) => sum + RssAnon, most("RssFile") + most("RssShmem"));
}

/** Returns the resident memory of one process: 0 if it has ended; for this process its peak if its status cannot be read. */
function heldBy(pid: number): Record<(typeof kinds)[number], number> {
  const bytes = { RssAnon: 0, RssFile: 0, RssShmem: 0 };
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    for (const kind of kinds) {
      bytes[kind] = 1024 * Number(new RegExp(`^${kind}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
    }
  } catch {
    if (pid === process.pid) bytes.RssAnon = 1024 * process.resourceUsage().maxRSS;
  }
  return bytes;
}
