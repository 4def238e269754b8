import { describeCollective } from "../../../src/job/events/index.ts";
import { lossesOf } from "../../fixtures/run-tiny.ts";
import type { Placement } from "../faults.ts";
import { type Hang, hangOnce } from "../hang.ts";
import { type ChaosOptions, say } from "./report.ts";

/** Ranks that stand still: each is named, alone, and the run goes on. */
export async function reportHangs({ workspace }: ChaosOptions): Promise<boolean> {
  const spread = { steps: 12, atStep: 4, stallMs: 1_000 };
  let allHold = true;
  const ways: readonly [Hang, Placement][] = [
    ["hang", "thread"],
    ["block", "thread"],
    ["hang", "process"],
    ["SIGSTOP", "process"],
  ];
  for (const tp of [1, 2]) {
    const undisturbed = await lossesOf(workspace, { ranks: 2, tp, steps: spread.steps });
    for (const [hang, placement] of ways) {
      const { stalled, awaited, lateMs, losses } = await hangOnce(workspace, hang, placement, {
        ...spread,
        tp,
      });
      const same = losses.join() === undisturbed.join();
      const waiting = awaited?.isWaiting ? `, rank-0 waits${describeCollective(awaited)}` : "";
      say(
        `hangs: ${hang} on a ${placement}, tp ${tp}: ${stalled.actor} named at ${stalled.op?.name} #${stalled.op?.sequence}${describeCollective(stalled.collective)}${waiting}; ${lateMs.toFixed(0)} ms after its time was up; losses ${same ? "the same" : "OTHERS"}`,
      );
      allHold &&= stalled.actor === "rank-1" && same;
    }
  }
  return allHold;
}
