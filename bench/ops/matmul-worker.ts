// On each message: multiplies matrices with one thread for a moment and answers with GFLOP/s.
import { parentPort } from "node:worker_threads";
import { ones, scope, setNumThreads } from "../../src/compute/tensor/index.ts";

const size = 768;
const numProducts = 60;

setNumThreads(1);
const a = ones([size, size]);
const b = ones([size, size]);

parentPort?.on("message", () => {
  const start = process.hrtime.bigint();
  for (let i = 0; i < numProducts; ++i) scope(() => a.matmul(b));
  const nanoseconds = Number(process.hrtime.bigint() - start);
  parentPort?.postMessage((2 * size ** 3 * numProducts) / nanoseconds);
});
