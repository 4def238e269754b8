import { spawnSync } from "node:child_process";

/** The signal that a process gets when its parent has ended. It ends the process unless the process handles it. */
export const orphanSignal = "SIGUSR2";

const setpriv = ["setpriv", "--pdeathsig", orphanSignal.slice(3), "--"] as const;
let isThere: boolean | undefined;

/**
 * Returns a command to which the kernel sends {@link orphanSignal} when the thread that starts it ends. While the process
 * still loads, for one to five seconds, nothing else could reach it. Without `setpriv` of util-linux, the process ends only
 * once it has loaded.
 */
export function endingWithParent(program: string, args: readonly string[]): [string, readonly string[]] {
  const [command, ...options] = setpriv;
  isThere ??= spawnSync(command, [...options, "true"], { stdio: "ignore" }).status === 0;
  return isThere ? [command, [...options, program, ...args]] : [program, args];
}
