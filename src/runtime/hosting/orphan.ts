import { spawnSync } from "node:child_process";

/** The signal that a process gets when the one that started it is gone: one that ends it, unless it listens to it. */
export const orphanSignal = "SIGUSR2";

const setpriv = ["setpriv", "--pdeathsig", orphanSignal.slice(3), "--"] as const;
let isThere: boolean | undefined;

/**
 * A command that is given {@link orphanSignal} by the kernel when the thread that starts it ends. Before it can listen to anybody,
 * while it loads for a second or five, nothing else would reach it. Where util-linux has no `setpriv`, it ends once it has loaded.
 */
export function endingWithParent(program: string, args: readonly string[]): [string, readonly string[]] {
  const [command, ...options] = setpriv;
  isThere ??= spawnSync(command, [...options, "true"], { stdio: "ignore" }).status === 0;
  return isThere ? [command, [...options, program, ...args]] : [program, args];
}
