import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { LastLines } from "./last-lines.ts";
import { endingWithParent } from "./orphan.ts";
import { type ProcessStart, startVariable } from "./process-orders.ts";
import { workerEnv, workerFlags } from "./thread.ts";

const processEntry = fileURLToPath(new URL("./process-entry.ts", import.meta.url));

/**
 * Has glibc ask for huge pages for its heap. libtorch fills 20 MB of it with its operators as it loads, and touching that page by
 * page was a third of the processor time in which a process starts.
 */
const HUGE_PAGES = { GLIBC_TUNABLES: "glibc.malloc.hugetlb=1" };

/** How long to wait for the last output of a process that has ended; it takes microseconds. */
export const lastWordsMs = 50;

/** The end of a process. Plain data. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  /** Set if it could not be started or its host is lost. */
  readonly error?: Error | undefined;
}

/** A process that was started for actors, on this host or another. */
export interface StartedProcess {
  /** Number of the host that it runs on; undefined for this one. */
  readonly place: number | undefined;
  /** Process id on its host; undefined before it runs. */
  readonly pid: number | undefined;
  readonly exited: Promise<ProcessEnd>;
  /** Resolves when all its output has been copied. */
  readonly silent: Promise<void>;
  /** The last lines that it wrote, oldest first. */
  readonly lastLines: string;
  kill(): void;
}

/**
 * Starts a process on this host; its output is copied to this process's, each line after `name`.
 * @param onBegun - called with its id if it has begun
 */
export function startProcess(
  name: string,
  start: ProcessStart,
  onBegun?: (pid: number) => void,
): StartedProcess {
  const [command, args] = endingWithParent(process.execPath, processArguments());
  const child = spawn(command, args, {
    env: { ...processEnv(), [startVariable]: JSON.stringify(start) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (child.pid !== undefined) onBegun?.(child.pid);
  const lines = new LastLines(name);
  // If no file descriptor is left, both are missing, whatever the type says; the error comes a tick later.
  const { stdout, stderr } = child;
  if (stdout) lines.follow(stdout, process.stdout);
  if (stderr) lines.follow(stderr, process.stderr);
  const exited = untilExited(child);
  return {
    place: undefined,
    get pid() {
      return child.pid;
    },
    exited,
    silent: exited.then(() => untilClosed(child)),
    get lastLines() {
      return lines.text;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

/** Makes the error of a process's end for its actors, without a code of Troupe's: nobody threw it on purpose. */
export function endOf(name: string, { pid, lastLines }: StartedProcess, end: ProcessEnd): Error {
  const { exitCode, signalCode, error } = end;
  if (error !== undefined) return error;
  const how = signalCode === null ? `left with exit code ${exitCode}` : `was ended by ${signalCode}`;
  const words = lastLines === "" ? "" : `; it wrote last:\n${lastLines}`;
  const death = new Error(`its process ${name} (${pid}) ${how}${words}`);
  return Object.assign(death, { code: signalCode ?? `EXIT_${exitCode}` });
}

function untilExited(child: ChildProcess): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.on("exit", (exitCode, signalCode) => resolve({ exitCode, signalCode }));
    child.on("error", (error) => resolve({ exitCode: null, signalCode: null, error }));
  });
}

async function untilClosed({ stdout, stderr }: ChildProcess): Promise<void> {
  for (const stream of [stdout, stderr]) if (stream && !stream.closed) await once(stream, "close");
}

/** The arguments of Node for a process: the flags of this one, without those of a script on the command line, and its program. */
export const processArguments = (): string[] => [
  ...(workerFlags(process.execArgv).execArgv ?? process.execArgv),
  processEntry,
];

/** The environment of a process, without its {@link ProcessStart}. */
export const processEnv = (): NodeJS.ProcessEnv => ({ ...HUGE_PAGES, ...workerEnv(process.env) });
