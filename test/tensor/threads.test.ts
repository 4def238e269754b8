import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { numThreads, setNumThreads } from "../../src/compute/tensor/index.ts";
import type { RefRequest } from "../fixtures/tensor/ref-worker.ts";
import { refusal } from "./numbers.ts";

async function threadsOf(worker: Worker, count: number): Promise<number> {
  worker.postMessage({ do: "threads", count } satisfies RefRequest);
  const [answer] = await once(worker, "message");
  return answer.result;
}

it("keeps each thread's number of threads apart from the others'", async () => {
  const workers = [0, 1].map(() => new Worker(new URL("../fixtures/tensor/ref-worker.ts", import.meta.url)));
  const [one, three] = workers as [Worker, Worker];
  expect(await threadsOf(one, 1)).toBe(1);
  expect(await threadsOf(three, 3)).toBe(3);
  setNumThreads(2);
  expect(await threadsOf(one, 0)).toBe(1);
  expect(await threadsOf(three, 0)).toBe(3);
  expect(numThreads()).toBe(2);
  await Promise.all(workers.map((worker) => worker.terminate()));
});

it("refuses a count below one", () => {
  expect(refusal(() => setNumThreads(0))).toMatchObject({ code: "TENSOR_ARGUMENT" });
  expect(refusal(() => setNumThreads(1.5))).toMatchObject({ code: "TENSOR_ARGUMENT" });
});
