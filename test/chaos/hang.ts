import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Runtime, type TroupeEvent } from "../../src/entries/index.ts";
import type { ActorInspection } from "../../src/runtime/index.ts";
import type { Workspace } from "../fixtures/run-tiny.ts";
import type { Placement } from "./faults.ts";

/** The ways in which a rank hangs. */
export type Hang = "hang" | "block" | "SIGSTOP";

/** The report of a rank that hangs. */
export interface Named {
  readonly stalled: TroupeEvent & { readonly kind: "actor.stalled" };
  /** The collective in which the other rank waits for the first. */
  readonly awaited: ActorInspection["collective"];
  /** How long it was allowed to show no progress then, in ms. */
  readonly afterMs: number;
  /** How long after its time was up it was named, in ms. */
  readonly lateMs: number;
  /** How often the run was taken up again. */
  readonly numRestored: number;
  /** The losses of the complete run, by step. */
  readonly losses: readonly number[];
}

/** The step in which it hangs, and the stall limit. */
export interface HangOptions {
  readonly steps: number;
  readonly atStep: number;
  readonly stallMs: number;
  readonly tp?: number;
}

const struckJob = new URL("../fixtures/jobs/struck.ts", import.meta.url);

/** Has rank 1 stand still after `atStep` steps, and lets the run go on to its end. */
export async function hangOnce(
  workspace: Workspace,
  hang: Hang,
  placement: Placement,
  { steps, atStep, stallMs, tp = 1 }: HangOptions,
): Promise<Named> {
  const strikes = workspace.path(`strikes-${hang}-${placement}`);
  mkdirSync(strikes, { recursive: true });
  await using runtime = await Runtime.spawn({ ranks: 2, tp, placement, steps, stallMs, threadsPerRank: 1 });
  const losses: number[] = [];
  const stepsMs: number[] = [];
  let stalled: Named["stalled"] | undefined;
  let awaited: Named["awaited"];
  let afterMs = stallMs;
  let struck = false;
  let numRestored = 0;
  // A sink is called before anything is done about it.
  runtime.addSink({
    write({ kind }) {
      if (kind === "actor.stalled")
        awaited ??= runtime.inspect().find(({ actor }) => actor === "rank-0")?.collective;
    },
    close: async () => {},
  });
  runtime.events$.subscribe((event) => {
    if (event.kind === "step.finished") {
      losses[event.step - 1] = event.lossNats;
      if (stalled === undefined) stepsMs.push(event.durationMs);
    }
    if (event.kind === "run.restored") numRestored++;
    if (event.kind === "actor.stalled" && stalled === undefined) {
      stalled = event;
      // As `RuntimeOptions.stallMs` has it.
      afterMs = Math.max(stallMs, 5 * Math.max(...stepsMs));
    }
    if (event.kind !== "step.finished" || event.step < atStep || struck) return;
    struck = true;
    if (hang === "SIGSTOP")
      process.kill(runtime.inspect().find(({ actor }) => actor === "rank-1")?.pid as number, hang);
    else writeFileSync(join(strikes, "rank-1"), hang);
  });
  await runtime.run(struckJob, {
    data: workspace.text,
    cache: workspace.path("cache"),
    strikes,
    // Longer than the five long steps of a busy machine after which it is named, shorter than what ends the run.
    blockSeconds: 4,
  });
  if (stalled === undefined)
    throw new Error(`expected rank 1 to be named: nobody was (${hang}, ${placement})`);
  const quietMs = Math.min(stalled.ageMs, stalled.collective?.ageMs ?? stalled.ageMs);
  return { stalled, awaited, afterMs, lateMs: quietMs - afterMs, numRestored, losses };
}
