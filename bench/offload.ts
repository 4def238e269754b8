/**
 * Offload: what the disk gives, and what is hidden behind the computation.
 * `npm run bench -- offload [--dir DIR] [--mib 512] [--steps 12]`
 */
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { reportDisk } from "./offload/disk.ts";
import { reportOverlap } from "./offload/overlap.ts";

const usage = `
usage: npm run bench -- offload [OPTIONS]

  --dir FOLDER  on the disk (here)
  --mib N       that are written and read (512)
  --steps N     of each run, 4 or more (12)`;
const { values: flags } = readArguments(usage, {
  dir: { type: "string", default: "." },
  mib: { type: "string", default: "512" },
  steps: { type: "string", default: "12" },
});
const [mib, steps] = [countOf(usage, "mib", flags.mib), countOf(usage, "steps", flags.steps)];
if (steps < 4) refuse(usage, "--steps 4 or more, since the first three are left out", `${steps}`);
await reportDisk(flags.dir, mib);
await reportOverlap(flags.dir, steps);
