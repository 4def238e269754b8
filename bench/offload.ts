/**
 * Offload: what the disk gives, and what is hidden behind the computation.
 * `npm run bench -- offload [--dir DIR] [--mib 512] [--steps 12]`
 */
import { parseArgs } from "node:util";
import { reportDisk } from "./offload/disk.ts";
import { reportOverlap } from "./offload/overlap.ts";

const { values: flags } = parseArgs({
  options: {
    dir: { type: "string", default: "." },
    mib: { type: "string", default: "512" },
    steps: { type: "string", default: "12" },
  },
});
await reportDisk(flags.dir, Number(flags.mib));
await reportOverlap(flags.dir, Number(flags.steps));
