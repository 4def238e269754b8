import { readFileSync } from "node:fs";

const kinds = ["RssAnon", "RssFile", "RssShmem"] as const;

/** Memory that processes hold, in bytes; what several of them map of files and shared memory is counted once, at its largest. */
export function residentBytes(pids: readonly number[]): number {
  const held = pids.map(heldBy);
  const most = (kind: (typeof kinds)[number]): number => Math.max(...held.map((bytes) => bytes[kind]));
  return held.reduce((sum, { RssAnon }) => sum + RssAnon, most("RssFile") + most("RssShmem"));
}

/** Nothing of a process that has ended; of this one, where no file can be opened, the most it has held. */
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
