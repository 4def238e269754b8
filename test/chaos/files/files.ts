import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Chance } from "../chance.ts";
import { makers } from "./makers.ts";
import type { ReadOrder, ReadOutcome } from "./read-one.ts";

/** The results for the files of one kind. */
export interface KindReport {
  readonly kind: string;
  numFiles: number;
  numTaken: number;
  numRefused: number;
  slowestMs: number;
  mostBytes: number;
  readonly findings: string[];
}

/** No file may cost more: a second of computing, and memory beyond what the program has before. */
export const [MOST_MS, MOST_BYTES] = [1_000, 200 * 2 ** 20];
/** Far more than a busy machine needs for a second of computing: a reader that has not answered by then never will. */
const SILENT_MS = 30_000;
const program = fileURLToPath(new URL("./read-one.ts", import.meta.url));

/**
 * Has a program of its own read hostile files of every kind, and keeps count of what each cost. One that hangs, dies, throws what is no
 * refusal, or costs more than it may is a finding; its seed makes it again.
 * @param folder - for the files, each removed when it was read
 */
export async function fuzzFiles(
  folder: string,
  {
    kinds,
    filesOfKind,
    chance,
  }: { readonly kinds: readonly string[]; readonly filesOfKind: number; readonly chance: Chance },
): Promise<KindReport[]> {
  mkdirSync(folder, { recursive: true });
  await using reader = new Reader();
  const reports: KindReport[] = [];
  for (const kind of kinds) {
    const report: KindReport = {
      kind,
      numFiles: 0,
      numTaken: 0,
      numRefused: 0,
      slowestMs: 0,
      mostBytes: 0,
      findings: [],
    };
    reports.push(report);
    for (let index = 0; index < filesOfKind; index++) {
      const place = join(folder, `${index}`);
      mkdirSync(place);
      const { path, what } = await (makers[kind] as (typeof makers)[string])(place, chance, index);
      const first = await reader.read({ kind, path });
      // Modules and threads that a reader loads at its first file are not the file's: a slow one is read again.
      const again = first.tookMs > MOST_MS ? await reader.read({ kind, path }) : first;
      add(report, what, { ...again, peakBytes: Math.max(first.peakBytes, again.peakBytes) });
      rmSync(place, { recursive: true, force: true });
    }
  }
  return reports;
}

function add(report: KindReport, made: string, outcome: ReadOutcome): void {
  const { what, message, isRefusal, tookMs, peakBytes } = outcome;
  report.numFiles++;
  if (what === "taken") report.numTaken++;
  else if (isRefusal) report.numRefused++;
  else report.findings.push(`${made}: ${what}: ${message}`);
  if (tookMs > MOST_MS) report.findings.push(`${made}: took ${tookMs.toFixed(0)} ms (${what} ${message})`);
  if (peakBytes > MOST_BYTES) report.findings.push(`${made}: ${peakBytes / 2 ** 20} MB (${what} ${message})`);
  report.slowestMs = Math.max(report.slowestMs, tookMs);
  report.mostBytes = Math.max(report.mostBytes, peakBytes);
}

/** The program that reads; started again when it has ended. */
class Reader implements AsyncDisposable {
  #program: ChildProcess | undefined;

  async read(order: ReadOrder): Promise<ReadOutcome> {
    const program = await this.#started();
    const timer = setTimeout(() => program.kill("SIGKILL"), SILENT_MS);
    const ended = once(program, "exit").then(
      ([code, signal]): ReadOutcome => ({
        what: `ended with ${signal ?? code}`,
        message: signal === "SIGKILL" ? "no answer, or no memory" : "",
        isRefusal: false,
        tookMs: 0,
        peakBytes: 0,
      }),
    );
    const answered = once(program, "message").then(([outcome]) => outcome as ReadOutcome);
    program.send(order);
    const outcome = await Promise.race([answered, ended]);
    clearTimeout(timer);
    program.removeAllListeners();
    if (program.exitCode !== null || program.signalCode !== null) this.#program = undefined;
    return outcome;
  }

  async #started(): Promise<ChildProcess> {
    if (this.#program !== undefined) return this.#program;
    const started = fork(program, {
      execArgv: [
        ...process.execArgv.filter((flag) => flag !== "--expose-gc"),
        "--expose-gc",
        "--max-old-space-size=2048",
      ],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    await once(started, "message");
    this.#program = started;
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const program = this.#program;
    if (program === undefined) return;
    const ended = once(program, "exit");
    program.kill("SIGKILL");
    await ended;
  }
}

/** A table of the results of all kinds. */
export function tableOf(reports: readonly KindReport[]): string {
  const rows = reports.map(({ kind, numFiles, numTaken, numRefused, slowestMs, mostBytes, findings }) => [
    kind,
    ...[numFiles, numTaken, numRefused].map(String),
    slowestMs.toFixed(0),
    (mostBytes / 2 ** 20).toFixed(0),
    String(findings.length),
  ]);
  const all = [["kind", "files", "taken", "refused", "slowest ms", "most MB", "findings"], ...rows];
  const widths = (all[0] as string[]).map((_, column) =>
    Math.max(...all.map((row) => (row[column] as string).length)),
  );
  return all
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[column] as number),
        )
        .join("  "),
    )
    .join("\n");
}
