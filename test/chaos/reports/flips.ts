import { Chance } from "../chance.ts";
import { damageEverywhere } from "../damage.ts";
import { type ChaosOptions, say } from "./report.ts";

/** A checkpoint that is damaged in every way: it is seen, and named. */
export async function reportFlips({ workspace, seed }: ChaosOptions): Promise<boolean> {
  const options = { every: 1, numDataBits: 10_000, chance: new Chance(seed) };
  const sightings = await damageEverywhere(workspace.path("damaged"), options);
  say("flips: a checkpoint in several files, damaged and read");
  for (const { kind, numTried, missed } of sightings) {
    say(
      `  ${String(numTried - missed.length).padStart(6)} of ${String(numTried).padStart(6)} seen and named: ${kind}`,
    );
    for (const each of missed.slice(0, 3)) say(`    missed: ${each}`);
  }
  return sightings.every(({ missed }) => missed.length === 0);
}
