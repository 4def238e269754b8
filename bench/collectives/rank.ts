// One rank of the benchmark of collectives.
import { parentPort } from "node:worker_threads";
import { openCommunicator } from "../../src/compute/collectives/index.ts";
import { empty, ones, scope, setNumThreads, tensor } from "../../src/compute/tensor/index.ts";
import { median } from "../measure/median.ts";
import type { Measured, RankTask } from "./start-rank.ts";

const task: RankTask = JSON.parse(process.env.TROUPE_BENCH_TASK ?? "{}");
const size = 2;
const moved = (size - 1) / size;
const timePerCaseMs = 400;
const deadlineMs = 60_000;

setNumThreads(1);
const comm = openCommunicator({ ...task, size, deadlineMs });
const rows = measure();
comm.close();
if (parentPort === null) process.send?.(rows, () => process.disconnect());
else parentPort.postMessage(rows);

function measure(): Measured[] {
  if (task.suite === "bmtrain") return bmtrain();
  return [
    latency(),
    ...[2 ** 12, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 26].map((sizeBytes) => scope(() => allReduce(sizeBytes))),
    ...[2 ** 20, 2 ** 24].map((sizeBytes) => scope(() => allGather(sizeBytes, "float32"))),
    ...[2 ** 20, 2 ** 24].map((sizeBytes) => scope(() => reduceScatter(sizeBytes, "float32"))),
    ...scope(overlap),
  ];
}

function latency(): Measured {
  const x = ones([1]);
  return row("all-reduce of 4 bytes", 0, 0, () => comm.allReduce(x, "max").wait());
}

function allReduce(sizeBytes: number): Measured {
  const x = ones([sizeBytes / 4]);
  return row("all-reduce float32", sizeBytes, 2 * moved, () => comm.allReduce(x, "max").wait());
}

function allGather(sizeBytes: number, dtype: "float32" | "float16"): Measured {
  const numel = sizeBytes / (dtype === "float32" ? 4 : 2);
  const output = empty([numel], { dtype });
  const input = ones([numel / size], { dtype });
  return row(`all-gather ${dtype}`, sizeBytes, moved, () => comm.allGather(output, input).wait());
}

function reduceScatter(sizeBytes: number, dtype: "float32" | "float16"): Measured {
  const numel = sizeBytes / (dtype === "float32" ? 4 : 2);
  const output = empty([numel / size], { dtype });
  const input = ones([numel], { dtype });
  return row(`reduce-scatter ${dtype} avg`, sizeBytes, moved, () =>
    comm.reduceScatter(output, input, "avg").wait(),
  );
}

/** BMTrain's all_gather, reduce_scatter (avg) and send_recv of float16, warmed up and repeated. */
function bmtrain(): Measured[] {
  const sizes = Array.from({ length: 9 }, (_, index) => 2 ** (10 + 2 * index));
  return sizes.flatMap((sizeBytes) =>
    scope(() => {
      const x = ones([sizeBytes / 2], { dtype: "float16" });
      const pass = (): void => (comm.rank === 0 ? comm.send(x, 1) : comm.recv(x, 0)).wait();
      return [
        allGather(sizeBytes, "float16"),
        reduceScatter(sizeBytes, "float16"),
        row("send/recv float16", sizeBytes, 1, pass),
      ];
    }),
  );
}

/** A product beside an all-reduce over a link that takes as long: at once, they should take one of the two times. */
function overlap(): Measured[] {
  const a = ones([768, 768]);
  const product = (): void => void scope(() => a.matmul(a));
  const productUs = median(repeat(product, 50));
  const delayMs = 5;
  using slow = openCommunicator({ ...task, name: `${task.name}-slow`, size, deadlineMs, delayMs });
  const x = ones([1 << 16]);
  const products = agreed(Math.max(1, Math.round((1000 * delayMs) / productUs)));
  const compute = (): void => {
    for (let i = 0; i < products; i++) product();
  };
  const named = (name: string, body: () => void): Measured => row(name, 0, 0, body);
  return [
    named(`${products} products`, compute),
    named(`and a link of ${delayMs} ms, in turn`, () => {
      slow.allReduce(x, "max").wait();
      compute();
    }),
    named(`and a link of ${delayMs} ms, at once`, () => {
      const work = slow.allReduce(x, "max");
      compute();
      work.wait();
    }),
  ];
}

function row(name: string, sizeBytes: number, busPart: number, body: () => void): Measured {
  const timeUs = median(together(body));
  return {
    name,
    sizeBytes,
    timeUs,
    busBytes: sizeBytes * busPart,
    copyUs: sizeBytes === 0 ? 0 : copyTimeUs(sizeBytes),
  };
}

function copyTimeUs(sizeBytes: number): number {
  return scope(() => {
    const from = ones([sizeBytes / 4]);
    const to = ones([sizeBytes / 4]);
    return median(repeat(() => void to.copy_(from), repeatsFor(timeUs(() => void to.copy_(from)))));
  });
}

/** Times a body in which both ranks take part: rank 0 says how often. */
function together(body: () => void): number[] {
  const warmUp = repeat(body, 5);
  const numRepeats = agreed(repeatsFor(median(warmUp)));
  comm.barrier();
  return repeat(body, numRepeats);
}

/** The number of rank 0. */
function agreed(number: number): number {
  return scope(() => {
    const received = tensor([number]);
    comm.broadcast(received, 0).wait();
    return received.item();
  });
}

function repeatsFor(bodyUs: number): number {
  return Math.min(20_000, Math.max(7, Math.round((1000 * timePerCaseMs) / bodyUs)));
}

function repeat(body: () => void, numRepeats: number): number[] {
  return Array.from({ length: numRepeats }, () => timeUs(body));
}

function timeUs(body: () => void): number {
  const start = process.hrtime.bigint();
  body();
  return Number(process.hrtime.bigint() - start) / 1000;
}
