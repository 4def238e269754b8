import { spawn } from "node:child_process";
import { once } from "node:events";
import { openCheckpoint } from "../../src/library/checkpoint/reading/open-checkpoint.ts";
import { countedEnv } from "../fixtures/can-inject.ts";

/** The program that saves one step. */
export const saveStep = new URL("./save-step.ts", import.meta.url).pathname;

/** The result of a save, as its process reported it: nothing if it was killed before. */
export interface Outcome {
  readonly saved?: string;
  readonly failed?: { code: string; message: string; fields: { errno?: string } };
}

/** Runs a program to its end: what it said last, nothing where it was killed before it said anything. */
export async function outcomeOf(command: string, args: readonly string[]): Promise<Outcome> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"], env: countedEnv });
  // Its output ends before its process: strace detaches, and a killed process closes its files first.
  const ended = once(child, "exit");
  const lines = (await child.stdout.toArray()).join("").trim().split("\n");
  await ended;
  return JSON.parse(lines.at(-1) || "{}") as Outcome;
}

/** Saves a step in a process whose `count`-th system call of one kind has `fault`. */
export function saveUnder(
  fault: string,
  call: string,
  count: number,
  directory: string,
  step: number,
): Promise<Outcome> {
  const inject = `inject=${call}:${fault}:when=${count}`;
  const args = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`, "-e", inject];
  return outcomeOf("strace", [...args, process.execPath, saveStep, directory, String(step)]);
}

/** The step of the newest complete checkpoint, part of which was read. */
export async function stepIn(directory: string): Promise<number> {
  await using checkpoint = await openCheckpoint(directory);
  const [numElements = 0] = checkpoint.entry("wte.weight").shape;
  await checkpoint.read("wte.weight", new Uint8Array(4 * numElements));
  return checkpoint.state.step;
}
