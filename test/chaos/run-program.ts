import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { possessions } from "./leftovers.ts";
import type { Trained, TrainingOrder } from "./train-and-save.ts";

/** The program that trains and saves as a {@link TrainingOrder} says. */
export const trainAndSave = new URL("./train-and-save.ts", import.meta.url).pathname;

/** A run takes 3 s, one that is ended by force 12: a bound for a machine that has twenty times as much else to do. */
const DEADLINE_MS = 300_000;

/** The surroundings of a program. */
export interface Surroundings {
  /** A folder of its own. */
  readonly folder: string;
  /** A module that every thread of it loads first. */
  readonly preload?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** How a program ended. */
export interface Ran<Answer = Trained> {
  /** Its answer; undefined if it ended before. */
  readonly answer: Answer | undefined;
  readonly ending: string;
  /** All that it wrote, its complaints last. */
  readonly output: string;
  /** Its leftovers: processes, shared memory, temporary files. */
  readonly left: readonly string[];
}

/**
 * Trains in a program of its own, and looks for what it leaves.
 * @param file - takes the order as its argument, and prints what became of it
 */
export async function runProgram<Answer = Trained, Order extends object = TrainingOrder>(
  order: Order,
  around: Surroundings,
  file = trainAndSave,
): Promise<Ran<Answer>> {
  const { preload, env } = around;
  const temporary = join(around.folder, "temporary");
  mkdirSync(temporary, { recursive: true });
  const [name, value] = ["TROUPE_CHAOS", randomUUID()];
  const program = spawn(process.execPath, [file, JSON.stringify(order)], {
    env: {
      // Kept where all programs find it, and not in the folder that is looked through.
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      ...process.env,
      ...(preload === undefined
        ? {}
        : { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} --import=${preload}` }),
      TMPDIR: temporary,
      [name]: value,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: DEADLINE_MS,
    killSignal: "SIGKILL",
  });
  const [said, complained] = [program.stdout.toArray(), program.stderr.toArray()];
  await once(program, "close");
  const { exitCode, signalCode, pid = 0 } = program;
  const here = possessions({ mark: `${name}=${value}`, folder: temporary, pids: new Set([pid]) });
  const left = (["processes", "segments", "files"] as const).flatMap((kind) =>
    here[kind].map((each) => `left of ${kind}: ${each}`),
  );
  const [out, err] = [(await said).join(""), (await complained).join("")];
  const ending = `${signalCode ?? exitCode}: ${err.slice(-300)}`;
  const lastLine = out.trim().split("\n").at(-1) ?? "";
  const isWhole = exitCode === 0 && lastLine.startsWith("{");
  return { answer: isWhole ? (JSON.parse(lastLine) as Answer) : undefined, ending, output: out + err, left };
}
