import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { LastLines } from "./last-lines.ts";
import { endingWithParent } from "./orphan.ts";
import { birthVariable, type ProcessBirth } from "./process-orders.ts";
import { workerEnv, workerFlags } from "./thread.ts";

const processEntry = fileURLToPath(new URL("./process-entry.ts", import.meta.url));

/** What a process said before its end is a matter of microseconds when its end is known. */
export const lastWordsMs = 50;

/** How a process has ended: plain data. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  /** Where it was none of the two: it could not be started, or its host is gone. */
  readonly error?: Error | undefined;
}

/** A process that was started for actors, on this host or another, as its end is learned of. */
export interface StartedProcess {
  /** The host that it runs on; undefined for this one. */
  readonly place: number | undefined;
  /** Of its host; undefined before it runs, and where it never does. */
  readonly pid: number | undefined;
  readonly exited: Promise<ProcessEnd>;
  /** Resolves when all that it wrote has been passed on. */
  readonly silent: Promise<void>;
  /** The last lines that it wrote, oldest first. */
  readonly lastLines: string;
  /** Ends it at once. */
  kill(): void;
}

/**
 * Starts a process on this host, whose lines appear on this one's outputs.
 * @param name - before each of its lines
 */
export function startProcess(name: string, birth: ProcessBirth): StartedProcess {
  const [command, args] = endingWithParent(process.execPath, [...flags(), processEntry]);
  const child = spawn(command, args, {
    env: { ...workerEnv(process.env), [birthVariable]: JSON.stringify(birth) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines = new LastLines(name);
  // Without a descriptor left there is none of them, whatever the type says; its error comes a tick later.
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

/** What an end means to whoever lived there. Without a code of ours: nobody threw this on purpose. */
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

/** The flags of this process, without a script on the command line, which is none of its business. */
function flags(): readonly string[] {
  return workerFlags(process.execArgv).execArgv ?? process.execArgv;
}
