// The rate at which the machine multiplies matrices: each core on a thread of its own, all at once, as in a step.
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { type DType, scope, setNumThreads, zeros } from "troupe/tensor";

const [rows, inner, columns] = [1024, 768, 3072];

/** Rates of products of GPT-2's shapes, in operations a second of a core's processor time. */
export interface ProductRate {
  /** All cores at once, over a second of them; the mean core. */
  readonly steady: number;
  /** The quickest single product. */
  readonly best: number;
}

/** @returns the rate of `cores` threads at work at once */
export async function productRate(cores: number, dtype: DType): Promise<ProductRate> {
  const rates = await Promise.all(
    Array.from({ length: cores }, () => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { products: dtype } });
      return new Promise<ProductRate>((resolve, reject) => {
        worker.once("message", resolve);
        worker.once("error", reject);
      });
    }),
  );
  return {
    steady: rates.reduce((sum, { steady }) => sum + steady, 0) / cores,
    best: Math.max(...rates.map(({ best }) => best)),
  };
}

if (!isMainThread && workerData?.products) {
  setNumThreads(1);
  const { operations, seconds, quickest } = multiply(workerData.products as DType, 1000);
  parentPort?.postMessage({ steady: operations / seconds, best: quickest });
}

/** Products that a thread made: their operations, its processor time, and the rate of the quickest one. */
export interface Multiplied {
  readonly operations: number;
  readonly seconds: number;
  readonly quickest: number;
}

/** Multiplies matrices of GPT-2's shapes for so long. */
export function multiply(dtype: DType, ms: number): Multiplied {
  return scope(() => {
    const a = zeros([rows, inner], { dtype }).add_(0.5);
    const b = zeros([inner, columns], { dtype }).add_(0.5);
    const seconds: number[] = [];
    const once = () => {
      const before = process.threadCpuUsage();
      scope(() => void a.matmul(b));
      const { user, system } = process.threadCpuUsage(before);
      seconds.push((user + system) / 1e6);
    };
    once(); // and load what it takes
    seconds.length = 0;
    const end = performance.now() + ms;
    do once();
    while (performance.now() < end);
    const operations = 2 * rows * inner * columns;
    return {
      operations: operations * seconds.length,
      seconds: seconds.reduce((sum, each) => sum + each, 0),
      quickest: operations / Math.min(...seconds),
    };
  });
}
