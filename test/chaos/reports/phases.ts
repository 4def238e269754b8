import { lossesOf } from "../../fixtures/run-tiny.ts";
import { STEPS, tryCell } from "../phases/cell.ts";
import { cellsOf } from "../phases/matrix.ts";
import { type Tried, tableOf } from "../phases/table.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Programs that run at once: most of each is the start of its threads, some of it waiting. */
const AT_ONCE = 2;

/** Every fault in every phase: the table of what became of the run. */
export async function reportPhases(options: ChaosOptions): Promise<boolean> {
  const { workspace, placements, target, isVerbose } = options;
  const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: STEPS });
  let allHold = true;
  for (const placement of placements) {
    const cells = cellsOf(placement)
      .filter(({ phase, fault }) => `${phase.name}/${fault.name}`.includes(target))
      .values();
    const tried: Tried[] = [];
    const beginMs = performance.now();
    const work = async (): Promise<void> => {
      for (const cell of cells) {
        const startMs = performance.now();
        const verdict = await tryCell(workspace, undisturbed, cell);
        const each = { cell, verdict, durationMs: performance.now() - startMs };
        tried.push(each);
        if (isVerbose || verdict.outcome === "FAILS") sayCell(each);
      }
    };
    // The workers share one iterator: each takes the next cell when it is done.
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    for (const line of tableOf(placement, tried)) say(line);
    const seconds = (performance.now() - beginMs) / 1000;
    say(`  ${tried.length} cells in ${seconds.toFixed(0)} s`);
    allHold &&= tried.every(({ verdict }) => verdict.outcome !== "FAILS");
  }
  return allHold;
}

function sayCell({ cell, verdict, durationMs }: Tried): void {
  const { placement, phase, fault } = cell;
  const { outcome, code, wrong } = verdict;
  const seconds = (durationMs / 1000).toFixed(1);
  say(
    `  ${placement} ${phase.name}/${fault.name}: ${outcome} ${code ?? ""} ${seconds} s ${wrong.join("; ")}`,
  );
}
