import { defineLoop } from "troupe";
import type { DType } from "troupe/tensor";
import { type Multiplied, multiply } from "../measure/products.ts";
import gpt from "./job.ts";

/** The name of the channel on which ranks in threads send each {@link Between}. */
export const BETWEEN = "troupe-bench-between";

/** Products that a rank made before a step, or behind the last one. */
export interface Between extends Multiplied {
  readonly step: number;
  /** The time that they took from the step: the thread's processor time, and the clock's. */
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

/** The same training, with products between the steps: the rate that the cores have just then. */
export default defineLoop(gpt, (rank) => {
  const { betweenMs, betweenDtype } = rank.config;
  const channel = new BroadcastChannel(BETWEEN);
  const measure = (step: number) => {
    const [cpu, wall] = [process.threadCpuUsage(), performance.now()];
    const multiplied = multiply(betweenDtype as DType, betweenMs);
    const { user, system } = process.threadCpuUsage(cpu);
    const cpuSeconds = (user + system) / 1e6;
    const wallSeconds = (performance.now() - wall) / 1000;
    channel.postMessage({ ...multiplied, step, cpuSeconds, wallSeconds } satisfies Between);
  };
  let numSteps = 0;
  for (const step of rank.steps()) {
    measure(step);
    rank.trainStep((batch) => gpt.loss(rank.model, batch, rank));
    numSteps = step + 1;
  }
  measure(numSteps);
  channel.close();
});
