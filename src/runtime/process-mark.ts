import { readFileSync } from "node:fs";

// Fields 3 and 22 of proc_pid_stat(5), after a name that may hold spaces and parentheses.
const STATE_AFTER_NAME = 0;
const START_TIME_AFTER_NAME = 19;

/** Mark of this process, by which others on the machine can check whether it still lives: its id and its start time. */
export const ownMark = `${process.pid}.${startOf(process.pid) ?? 0}`;

/** Whether the process of a mark has ended. Where the system cannot tell, as on systems other than Linux, the answer is yes. */
export function hasEnded(mark: string): boolean {
  const [pid, start] = mark.split(".");
  return startOf(Number(pid)) !== start;
}

/**
 * Returns when a process started, in ticks since the system booted; a reused id has another start time. Undefined if there is
 * no such process, and for a zombie: in a container whose first process reaps no children, it stays one forever.
 */
export function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[STATE_AFTER_NAME] === "Z" ? undefined : fields[START_TIME_AFTER_NAME];
  } catch {
    return undefined;
  }
}
