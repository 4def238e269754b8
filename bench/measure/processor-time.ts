import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds in a unit of `/proc`. */
const TICK_MS = 10;

/** Processor time, in ms, of a process and of all that it has started, those that have ended included. */
export function processorMs(pid = process.pid): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the name: its own time in user and kernel mode, and that of children that have ended.
    const times = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 16).map(Number);
    const own = TICK_MS * times.reduce((sum, ticks) => sum + ticks, 0);
    const tasks = readdirSync(`/proc/${pid}/task`);
    const children = tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
    return children.reduce((sum, child) => sum + processorMs(child), own);
  } catch {
    return 0; // it has ended meanwhile
  }
}
