// How fast is one AdamW step over a GPT-2's 124 million parameters, beside torch's fused AdamW in the same minute? With a
// float32 gradient, and as a bfloat16 model has it: gradient in bfloat16, new parameters written in bfloat16 too.
//
//   npm run bench -- adamw        (PYTHON names a Python with torch; without one only our own figures are printed)

import { cpus } from "node:os";
import { readArguments } from "../scripts/arguments.mjs";
import { empty, nativeInfo, ops, setNumThreads, type Tensor, zeros } from "../src/compute/tensor/index.ts";
import { machine } from "./measure/machine.ts";
import { median } from "./measure/median.ts";
import { startPeer } from "./ops/peer.ts";

const numParameters = 124_000_000;
const numRounds = 9;
const stepsPerRound = 2;
const bytesPerParameter = 28; // 7 × 4; or 6 × 4, a gradient of 2 and a copy of 2
const numThreads = cpus().length;

readArguments("usage: npm run bench -- adamw\n\nPYTHON names a Python with torch.", {});
setNumThreads(numThreads);
process.env.NUM_THREADS = String(numThreads);
process.env.NUM_PARAMETERS = String(numParameters);
console.log(machine(nativeInfo().capability, `libtorch ${nativeInfo().torch}`));

const normal = (stream: number): Tensor =>
  ops.troupe.philoxNormal_(empty([numParameters]), 0, 1, 1, stream, 0);
const param = normal(0);
const [expAvg, expAvgSq] = [zeros([numParameters]), zeros([numParameters])];
const gradient = normal(1);
const lowGradient = gradient.to("bfloat16");
const low = empty([numParameters], { dtype: "bfloat16" });

const cases = {
  float32: () => step(gradient),
  bfloat16: () => step(lowGradient, low),
};

const peer = await startPeer(new URL("./adamw/peer.py", import.meta.url));
if (peer === undefined) console.log("no Python with torch: our own figures only");
for (const [name, body] of Object.entries(cases)) {
  const ours: number[] = [];
  const theirs: number[] = [];
  timeOurs(body); // touches the memory
  await peer?.time(name, 1);
  for (let round = 0; round < numRounds; ++round) {
    ours.push(timeOurs(body));
    if (peer !== undefined) theirs.push(await peer.time(name, stepsPerRound));
  }
  report(name, median(ours), peer === undefined ? undefined : median(theirs));
}
peer?.stop();

function step(given: Tensor, copy?: Tensor): void {
  ops.troupe.adamw_(
    param,
    expAvg,
    expAvgSq,
    given,
    copy,
    [numParameters],
    [1e-3],
    [0.1],
    0.9,
    0.999,
    1e-8,
    1,
    1,
  );
}

/** Microseconds per step. */
function timeOurs(body: () => void): number {
  const start = process.hrtime.bigint();
  for (let i = 0; i < stepsPerRound; ++i) body();
  return Number(process.hrtime.bigint() - start) / 1000 / stepsPerRound;
}

function report(name: string, ours: number, theirs: number | undefined): void {
  const gigabytes = (bytesPerParameter * numParameters) / (ours * 1000);
  const beside = theirs === undefined ? "" : `, torch ${ms(theirs)} ms, ratio ${(theirs / ours).toFixed(2)}`;
  console.log(`  ${name.padEnd(8)} ${ms(ours)} ms, ${gigabytes.toFixed(1)} GB/s${beside}`);
}

function ms(microseconds: number): string {
  return (microseconds / 1000).toFixed(1);
}
