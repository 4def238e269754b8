import { lossesOf } from "../../fixtures/run-tiny.ts";
import { Chance } from "../chance.ts";
import { canRecord } from "../power/record.ts";
import { canPreload } from "../preloaded.ts";
import {
  canStarve,
  failWhileTraining,
  injectEverywhere,
  killAtRandom,
  type SavesReport,
  shortenWrites,
  starveWhileTraining,
} from "../saves.ts";
import { type ChaosOptions, say } from "./report.ts";

const failingCalls = [
  ["mkdir", "ENOSPC"],
  ["pwrite64", "ENOSPC"],
  ["pwrite64", "EIO"],
  ["fsync", "EIO"],
  ["rename", "EIO"],
] as const;

/** Saves whose system calls fail, alone and beside training, and saves that are killed: none that was reported is lost. */
export async function reportSaves({ workspace, seed, numKills }: ChaosOptions): Promise<boolean> {
  const folder = workspace.path("saves");
  let numWrong = 0;
  let numStruck = 0;
  const tell = ({ fault, numMet, wrong }: SavesReport): void => {
    numStruck += numMet;
    // A save never makes this call.
    if (numMet === 0 && wrong.length === 0) return;
    numWrong += wrong.length;
    say(`saves: ${fault}: ${numMet} hit it, ${wrong.length} lost, torn, left or reported wrongly`);
    for (const each of wrong.slice(0, 3)) say(`    ${each}`);
  };
  if (canRecord) {
    await injectEverywhere(folder, tell);
    if (numStruck === 0) {
      say("saves: NO FAULT was injected, though strace is there: nothing is shown");
      return false;
    }
    const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
    for (const [call, errno] of failingCalls) {
      for (const count of [1, 2, 3])
        tell(await failWhileTraining(workspace, undisturbed, call, errno, count));
    }
  } else say("saves: no strace here, or it is not allowed: no faults injected into system calls");
  if (canStarve) {
    const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
    tell(await starveWhileTraining(workspace, undisturbed));
  } else say("saves: no prlimit here: nobody was left without descriptors");
  if (canPreload) {
    const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
    tell(await shortenWrites(workspace, undisturbed));
  } else say("saves: no g++ here: no write was shortened");
  tell(await killAtRandom(folder, numKills, new Chance(seed)));
  return numWrong === 0;
}
