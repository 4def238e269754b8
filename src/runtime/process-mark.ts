import { readFileSync } from "node:fs";

// Fields 3 and 22 of proc_pid_stat(5), after a name that may hold spaces and parentheses.
const STATE_AFTER_NAME = 0;
const START_TIME_AFTER_NAME = 19;

/** This process, so that others of the machine can tell whether it still lives: its id, and when it started. */
export const ownMark = `${process.pid}.${startOf(process.pid) ?? 0}`;

/** Whether the process of a mark has ended; unknown where the system does not tell, as beyond Linux: then it has. */
export function hasEnded(mark: string): boolean {
  const [pid, start] = mark.split(".");
  return startOf(Number(pid)) !== start;
}

/**
 * When a process started, in the system's ticks since it booted: an id that is given anew has another. Undefined where there is none,
 * and of one that has ended and waits for a parent to ask: in a container whose first process asks for nobody it waits for ever.
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
