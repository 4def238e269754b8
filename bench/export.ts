// Measures how many weights a second are encoded into each type of GGUF, on one thread and on all.
//
//   npm run bench -- export
import { cpus } from "node:os";
import { readArguments } from "../scripts/arguments.mjs";
import { empty, ops, scope, setNumThreads, type Tensor } from "../src/compute/tensor/index.ts";
import { ggufTypes } from "../src/library/export/gguf/export-gguf.ts";
import { load } from "./measure/machine.ts";
import { median } from "./measure/median.ts";

const NUM_WEIGHTS = 1 << 22;
const ROUNDS = 5;

readArguments("usage: npm run bench -- export", {});
console.log(
  `${cpus()[0]?.model ?? "?"}, ${cpus().length} cores; million weights a second (of processor time)`,
);
for (const numThreads of [1, cpus().length]) {
  setNumThreads(numThreads);
  const rates = Object.entries(ggufTypes).map(([name, { encode }]) => {
    const rounds = Array.from({ length: ROUNDS }, (_, round) => secondsOf(encode, round));
    const [wall, processor] = [0, 1].map((at) => median(rounds.map((each) => each[at] as number)));
    const millions = (seconds = 1) => (NUM_WEIGHTS / seconds / 1e6).toFixed(1);
    return `${name} ${millions(wall)} (${millions(processor)})`;
  });
  console.log(`${numThreads} threads: ${rates.join(", ")}; load ${load()}`);
}

/** @returns seconds of the clock, and of all processors */
function secondsOf(encode: (weights: Tensor) => Uint8Array, seed: number): [number, number] {
  return scope(() => {
    const weights = empty([NUM_WEIGHTS / 1024, 1024]);
    ops.troupe.philoxNormal_(weights, 0, 0.02, seed, 0, 0);
    const [begun, used] = [performance.now(), process.cpuUsage()];
    encode(weights);
    const { user, system } = process.cpuUsage(used);
    return [(performance.now() - begun) / 1e3, (user + system) / 1e6];
  });
}
