// A program that reads the files which it is sent, one after the other, and says what became of each and what it cost.
import { readFileSync, writeFileSync } from "node:fs";
import { TroupeError } from "../../../src/entries/index.ts";
import { readers } from "./readers.ts";

/** A file to be read. */
export interface ReadOrder {
  readonly kind: string;
  readonly path: string;
}

/** The result of reading it. */
export interface ReadOutcome {
  /** An error's code where it was refused, `taken`, or what was thrown that is no refusal. */
  readonly what: string;
  readonly message: string;
  readonly isRefusal: boolean;
  /** Time of computing: elapsed time would include other work of the machine. */
  readonly tookMs: number;
  readonly peakBytes: number;
}

const collect = (globalThis as { gc?: () => void }).gc;

process.on("message", (order: ReadOrder) => void answer(order));
process.send?.("ready");

async function answer({ kind, path }: ReadOrder): Promise<void> {
  collect?.();
  // The kernel's own mark of the most memory: it begins again from now.
  writeFileSync("/proc/self/clear_refs", "5");
  const before = kilobytes("VmRSS");
  const begun = process.cpuUsage();
  const outcome = await outcomeOf(kind, path);
  const { user, system } = process.cpuUsage(begun);
  const peakBytes = 1024 * Math.max(0, kilobytes("VmHWM") - before);
  process.send?.({ ...outcome, tookMs: (user + system) / 1_000, peakBytes } satisfies ReadOutcome);
}

async function outcomeOf(
  kind: string,
  path: string,
): Promise<Pick<ReadOutcome, "what" | "message" | "isRefusal">> {
  try {
    await readers[kind]?.(path);
    return { what: "taken", message: "", isRefusal: false };
  } catch (error) {
    const isRefusal = error instanceof TroupeError;
    const { name, message, stack = "" } = error as Error;
    const place = isRefusal ? "" : (stack.split("\n").find((line) => line.includes("    at ")) ?? "");
    return { what: isRefusal ? error.code : name, message: `${message.slice(0, 400)}${place}`, isRefusal };
  }
}

function kilobytes(field: "VmRSS" | "VmHWM"): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync("/proc/self/status", "utf8"));
  return Number(found?.[1] ?? 0);
}
