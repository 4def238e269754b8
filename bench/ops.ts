// Measures a small operator through TypeScript beside PyTorch called from Python in the same minute, the same operator in a program,
// parts of GPT-2 in exact and fast programs, and whether two threads keep their full speed when both compute.
//
//   npm run bench -- ops          (PYTHON names a Python with torch; without one only our own figures are printed)

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { readArguments } from "../scripts/arguments.mjs";
import {
  full,
  nativeInfo,
  playForward,
  scope,
  setNumThreads,
  type Tensor,
  zeros,
} from "../src/compute/tensor/index.ts";
import { load, machine } from "./measure/machine.ts";
import { median } from "./measure/median.ts";
import { timeChains } from "./ops/chains.ts";
import { timeFast } from "./ops/fast.ts";
import { startPeer } from "./ops/peer.ts";
import { recorded } from "./ops/recorded.ts";

const numRounds = 15;
const callsPerRound = 20_000;
const callsPerScope = 100; // what one module call makes

const cases: Record<string, (a: Tensor, b: Tensor) => Tensor> = {
  add: (a, b) => a.add(b),
  matmul: (a, b) => a.matmul(b),
  view: (a) => a.view([2, 8]),
};

readArguments("usage: npm run bench -- ops\n\nPYTHON names a Python with torch.", {});
setNumThreads(1);
console.log(machine(`libtorch ${nativeInfo().torch}`));
await compareCalls();
timePrograms();
timeChains();
timeFast();
await compareThreads();

async function compareCalls(): Promise<void> {
  const peer = await startPeer(new URL("./ops/peer.py", import.meta.url));
  console.log(
    `µs per call on 4×4 float32, median of ${numRounds} rounds in turn${peer === undefined ? "; no Python with torch" : ""}`,
  );
  for (const [name, body] of Object.entries(cases)) {
    const ours: number[] = [];
    const theirs: number[] = [];
    timeOurs(body); // compiles
    for (let round = 0; round < numRounds; ++round) {
      ours.push(timeOurs(body));
      if (peer !== undefined) theirs.push(await peer.time(name, callsPerRound));
    }
    console.log(
      `  ${name.padEnd(8)} ${median(ours).toFixed(3)} ${peer === undefined ? "" : beside(median(ours), median(theirs))}`,
    );
  }
  peer?.stop();
}

/** Microseconds per operator of a program of a hundred, each of which reads the one before; forward, in one call. */
function timePrograms(): void {
  console.log(`µs per operator in a program of ${callsPerScope}, forward, load ${load()}`);
  for (const [name, body] of Object.entries(cases).filter(([name]) => name !== "view")) {
    scope(() => {
      const a = full([4, 4], 0.01).requiresGrad_();
      const b = full([4, 4], 0.01);
      const chained = (): Tensor =>
        Array.from({ length: callsPerScope }).reduce<Tensor>((x) => body(x, b), a);
      const program = recorded(chained, [a, b], full([4, 4], 1), false);
      const times = Array.from({ length: numRounds }, () => {
        const start = process.hrtime.bigint();
        for (let i = 0; i < callsPerRound; i += callsPerScope)
          scope(() => void playForward(program, [a, b], [], [false], false));
        return Number(process.hrtime.bigint() - start) / 1000 / callsPerRound;
      });
      console.log(`  ${name.padEnd(8)} ${median(times).toFixed(3)}`);
    });
  }
}

function beside(ours: number, theirs: number): string {
  return `Python ${theirs.toFixed(3)}, ratio ${(ours / theirs).toFixed(2)}`;
}

/** Microseconds per call, scope registration and release included. */
function timeOurs(body: (a: Tensor, b: Tensor) => Tensor): number {
  return scope(() => {
    const a = zeros([4, 4]);
    const b = zeros([4, 4]);
    const start = process.hrtime.bigint();
    for (let i = 0; i < callsPerRound; i += callsPerScope) {
      scope(() => {
        for (let j = 0; j < callsPerScope; ++j) body(a, b);
      });
    }
    return Number(process.hrtime.bigint() - start) / 1000 / callsPerRound;
  });
}

async function compareThreads(): Promise<void> {
  const workers = [0, 1].map(() => new Worker(new URL("./ops/matmul-worker.ts", import.meta.url)));
  const speed = async (worker: Worker): Promise<number> => {
    worker.postMessage("run");
    const [gigaflops] = await once(worker, "message");
    return gigaflops;
  };
  const [first, second] = workers;
  if (first === undefined || second === undefined) return;
  await Promise.all(workers.map(speed)); // loads and warms up
  const alone: number[] = [];
  const together: number[] = [];
  for (let round = 0; round < numRounds; ++round) {
    alone.push(await speed(round % 2 === 0 ? first : second));
    together.push(...(await Promise.all(workers.map(speed))));
  }
  console.log("GFLOP/s per thread, 768×768 float32 matmul, one OpenMP thread each, medians");
  console.log(`  alone    ${median(alone).toFixed(1)}`);
  console.log(
    `  together ${median(together).toFixed(1)}, ratio ${(median(together) / median(alone)).toFixed(2)}`,
  );
  await Promise.all(workers.map((worker) => worker.terminate()));
}
