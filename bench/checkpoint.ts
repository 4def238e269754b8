/**
 * Measures the cost of saving, all in the same run: how long a save in flight blocks training, and what it adds to steps; a save and
 * a load beside plain writes and reads of the same bytes; what it keeps in memory, and whether that grows from save to
 * save; and PyTorch's figures for as many parameters, where there is a Python with torch.
 *
 *   npm run bench -- checkpoint [--size gpt2|small] [--dir FOLDER] [--saves N] [--python PATH] [--script PATH]
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { countOf, readArguments, refuse } from "../scripts/arguments.mjs";
import { measureFiles } from "./checkpoint/files.ts";
import { measureGrowth } from "./checkpoint/growth.ts";
import { runPeer } from "./checkpoint/peer.ts";
import { isSize, measureTraining, sizes } from "./checkpoint/training.ts";
import { progress } from "./measure/progress.ts";

const usage = `
usage: npm run bench -- checkpoint [OPTIONS]

  --size NAME    ${Object.keys(sizes).join(" or ")} (gpt2)
  --dir FOLDER   where checkpoints are written (a temporary folder)
  --saves N      after which memory is looked at (200)
  --python PATH  a Python with torch (python3)
  --script PATH  the PyTorch script beside it (that of the shared peers)`;
const text = { type: "string" } as const;
const { values: flags } = readArguments(usage, {
  size: { ...text, default: "gpt2" },
  dir: { ...text, default: tmpdir() },
  saves: { ...text, default: "200" },
  python: { ...text, default: "python3" },
  script: text,
});
const size = isSize(flags.size)
  ? flags.size
  : refuse(usage, `--size ${Object.keys(sizes).join(" or ")}`, flags.size);
const numSaves = countOf(usage, "saves", flags.saves);
const folder = mkdtempSync(join(flags.dir, "troupe-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const ratio = (value: number, to: number) => `${(value / to).toFixed(3)} ×`;
const percent = (value: number, of: number) => `${((100 * value) / of).toFixed(2)} %`;
const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

const training = await measureTraining(size, folder, progress);
const { stepMs, stateBytes } = training;
const blockedMs = training.blockedMs.reduce((sum, ms) => sum + ms, 0) / training.blockedMs.length;
console.log(
  `${size}: ${training.numParameters} parameters, ${megabytes(stateBytes)} of state, two ranks, bf16`,
);
console.log(
  `a step ${seconds(stepMs)}; a save blocks training for ${blockedMs.toFixed(1)} ms, ${percent(blockedMs, stepMs)} of a step (target 1 %), ` +
    `mean of ${training.blockedMs.map((ms) => ms.toFixed(1)).join(", ")}: updates waiting for copies, event loops busy with them`,
);
console.log(
  `beside it, with all cores at work: ranks wait ${training.waitedMs.toFixed(1)} ms more in all, ${percent(training.waitedMs, stepMs)} of a step; ` +
    `steps take ${seconds(training.stretchedMs)} longer in all, ${percent(training.stretchedMs, stepMs)} of one, over ${seconds(training.savingMs)}`,
);
console.log(
  `staged at most ${megabytes(training.stagedBytes)}: ${ratio(training.stagedBytes, stateBytes)} the state (target 1.25)`,
);

const files = await measureFiles(folder, training.path, progress);
console.log(
  `durable after ${seconds(files.saveMs)}, a plain write and fsync of as many bytes ${seconds(files.writeMs)}: ` +
    `${ratio(files.saveMs, files.writeMs)} (target 1.25)`,
);
console.log(
  `loaded and checked in ${seconds(files.loadMs)}, a plain read ${seconds(files.readMs)}: ` +
    `${ratio(files.loadMs, files.readMs)} (target 1.1)`,
);

const growth = await measureGrowth(join(folder, "growth"), numSaves, progress);
console.log(
  `${growth.numSaves} saves of ${megabytes(growth.sizeBytes)}: memory grows by ${(growth.slopeBytes / 2 ** 20).toFixed(3)} MiB a save (target 0 ± 1)`,
);

const script =
  flags.script ?? fileURLToPath(new URL("../../shared/peers/pytorch_checkpoint.py", import.meta.url));
progress("PyTorch beside it");
const peer = existsSync(script)
  ? await runPeer(flags.python, script, training.numParameters, folder).catch((error: Error) => error)
  : new Error(`no script at ${script}`);
if (peer instanceof Error) {
  console.log(`no figures of PyTorch: ${peer.message} (give --script, and --python with torch)`);
} else {
  console.log(
    `PyTorch ${peer.torch}: async_save blocks ${seconds(peer.asyncBlockedMs)}, ours ${ratio(blockedMs, peer.asyncBlockedMs)} of that; ` +
      `it is done after ${seconds(peer.asyncDoneMs)}, ${ratio(peer.asyncDoneMs, peer.rawMs)} a plain write; save ${seconds(peer.saveMs)}, ` +
      `load ${seconds(peer.loadMs)}, ours ${ratio(files.loadMs, peer.loadMs)} of that`,
  );
}
