// Trains and saves as its argument, which is JSON, says, and prints the result: the program of disturbed runs.
import { spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { type ErrorReport, reportError } from "../../src/job/events/index.ts";

/** The training to do. */
export interface TrainingOrder {
  readonly job: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly options: RuntimeOptions;
  /** Between the ends of these two steps no descriptor can be opened. */
  readonly starved?: readonly [from: number, until: number];
  /** Descriptors that can be opened at a time, from before the run on. */
  readonly spareDescriptors?: number;
}

/** The result of the training. */
export interface Trained {
  /** The steps that were made, in order, those made again too. */
  readonly made: readonly (readonly [step: number, lossNats: number])[];
  /** Generations of the rank group after the first. */
  readonly numRestarts: number;
  /** Steps whose save was reported as begun. */
  readonly started: readonly number[];
  readonly saved: readonly number[];
  readonly failed: readonly { readonly step: number; readonly code?: string | undefined }[];
  readonly error?: ErrorReport | undefined;
}

const order = JSON.parse(process.argv[2] ?? "{}") as TrainingOrder;
const { job, config, options, starved, spareDescriptors } = order;
// It waits beside the run, since no helper can be started without a descriptor.
const warden =
  starved === undefined
    ? undefined
    : spawn("sh", ["-c", `while read most; do prlimit --pid ${process.pid} --nofile=$most:; done`], {
        stdio: ["pipe", "ignore", "inherit"],
      });
const limitDescriptors = (most: number): void => void warden?.stdin.write(`${most}\n`);
const made: [number, number][] = [];
const started: number[] = [];
const saved: number[] = [];
const failed: { step: number; code?: string | undefined }[] = [];
let numRestarts = 0;
if (spareDescriptors !== undefined) {
  const most = readdirSync("/proc/self/fd").length + spareDescriptors;
  spawnSync("prlimit", ["--pid", String(process.pid), `--nofile=${most}:`], { stdio: "ignore" });
}
await using runtime = await Runtime.spawn(options);
runtime.events$.subscribe((event) => {
  if (event.kind === "step.finished") {
    made.push([event.step, event.lossNats]);
    if (event.step === starved?.[0]) limitDescriptors(3);
    if (event.step === starved?.[1]) limitDescriptors(1_024);
  }
  if (event.kind === "actor.restarted" && event.actor === "rank-0") numRestarts += 1;
  if (event.kind === "checkpoint.started") started.push(event.step);
  if (event.kind === "checkpoint.saved") saved.push(event.step);
  if (event.kind === "checkpoint.failed") failed.push({ step: event.step, code: event.error.code });
});
let error: ErrorReport | undefined;
await runtime.run(job, config).catch((caught: unknown) => {
  error = reportError(caught);
});
await runtime.stop();
warden?.stdin.end();
const trained: Trained = { made, numRestarts, started, saved, failed, error };
process.stdout.write(`\n${JSON.stringify(trained)}\n`);
