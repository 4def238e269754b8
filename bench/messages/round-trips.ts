import { once } from "node:events";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { type ActorRef, ActorSystem } from "../../src/runtime/index.ts";
import { quantile } from "../measure/median.ts";
import type { BenchProtocol } from "./actor.ts";
import type { RawJob } from "./raw-thread.ts";
import { interleave, medianRatio, printLine, spread } from "./rounds.ts";

const numRounds = 15;
const numWarmUp = 3;
const tripsPerRound = 2_000;
const deadlineMs = 10_000;
const actorModule = new URL("./actor.ts", import.meta.url);

/** Starts a thread of the plain contestants. */
export function rawThread(job: RawJob): Worker {
  return new Worker(new URL("./raw-thread.ts", import.meta.url), {
    workerData: job,
    transferList: [job.port],
  });
}

/** One question at a time, answered by another thread: event loop to event loop, and from a thread that blocks. */
export async function measureRoundTrips(): Promise<void> {
  for (const sizeBytes of [0, 1 << 10, 1 << 16]) await compareAsks(sizeBytes);
  await compareWaits();
  await compareTracing();
}

async function compareAsks(sizeBytes: number): Promise<void> {
  await using system = new ActorSystem({ name: "bench" });
  const echo = await system.spawn<BenchProtocol>({ name: "echo", module: actorModule });
  const { port1, port2 } = new MessageChannel();
  const raw = rawThread({ role: "echo", port: port2 });
  const payload = sizeBytes === 0 ? { step: 7, block: "layers.3", value: 1 } : new Uint8Array(sizeBytes);
  const rawTrips: number[] = [];
  const ourTrips: number[] = [];
  const [rawRounds = [], ourRounds = []] = await interleave(
    [() => rawRound(port1, payload, rawTrips), () => askRound(echo, payload, ourTrips)],
    { numRounds, numWarmUp },
  );
  const name = sizeBytes === 0 ? "small object" : `${sizeBytes / 1024} KiB`;
  printLine(`round trip, ${name}: plain, µs`, `${spread(rawRounds)}  ${tail(rawTrips)}`);
  printLine(`round trip, ${name}: ask, µs`, `${spread(ourRounds)}  ${tail(ourTrips)}`);
  printLine("  ask / plain", medianRatio(ourRounds, rawRounds).toFixed(2));
  port1.close();
  await raw.terminate();
}

function tail(trips: readonly number[]): string {
  const shown = [0.5, 0.99, 0.999].map((share) => quantile(trips, share).toFixed(1));
  return `p50 ${shown[0]}, p99 ${shown[1]}, p99.9 ${shown[2]}`;
}

async function rawRound(port: MessagePort, payload: unknown, trips: number[]): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const startMs = performance.now();
  let sentMs = startMs;
  let numLeft = tripsPerRound;
  const next = (): void => {
    const nowMs = performance.now();
    trips.push((nowMs - sentMs) * 1_000);
    sentMs = nowMs;
    numLeft -= 1;
    if (numLeft > 0) port.postMessage(payload);
    else resolve(((nowMs - startMs) * 1_000) / tripsPerRound);
  };
  port.on("message", next);
  port.postMessage(payload);
  const figure = await promise;
  port.off("message", next);
  return figure;
}

async function askRound(echo: ActorRef<BenchProtocol>, payload: unknown, trips: number[]): Promise<number> {
  const startMs = performance.now();
  let sentMs = startMs;
  for (let trip = 0; trip < tripsPerRound; trip++) {
    await echo.ask("echo", payload, { deadlineMs });
    const nowMs = performance.now();
    trips.push((nowMs - sentMs) * 1_000);
    sentMs = nowMs;
  }
  return ((sentMs - startMs) * 1_000) / tripsPerRound;
}

async function compareWaits(): Promise<void> {
  await using system = new ActorSystem({ name: "bench" });
  const on = await system.spawn<BenchProtocol>({ name: "echo", module: actorModule });
  const waiter = await system.spawn<BenchProtocol>({ name: "waiter", module: actorModule });
  const { port1, port2 } = new MessageChannel();
  const bell = new SharedArrayBuffer(4);
  const threads = [
    rawThread({ role: "echo", port: port2, bell }),
    rawThread({ role: "wait", port: port1, bell }),
  ];
  const rawWaiter = threads[1] as Worker;
  const rawWait = async (): Promise<number> => {
    rawWaiter.postMessage(tripsPerRound);
    const [figure] = (await once(rawWaiter, "message")) as [number];
    return figure;
  };
  const ourWait = () => waiter.ask("wait", { on, count: tripsPerRound }, { deadlineMs: 60_000 });
  const [rawRounds = [], ourRounds = []] = await interleave([rawWait, ourWait], { numRounds, numWarmUp });
  printLine("round trip of a blocking thread: plain, µs", spread(rawRounds));
  printLine("round trip of a blocking thread: request and wait, µs", spread(ourRounds));
  printLine("  wait / plain", medianRatio(ourRounds, rawRounds).toFixed(2));
  await Promise.all(threads.map((thread) => thread.terminate()));
}

/** DL-22: what it costs to trace one call in a hundred, and all of them. */
async function compareTracing(): Promise<void> {
  await using plain = new ActorSystem({ name: "plain" });
  await using sampled = new ActorSystem({ name: "sampled", messaging: { traceEvery: 100 } });
  await using traced = new ActorSystem({ name: "traced", messaging: { traceEvery: 1 } });
  const echoes: ActorRef<BenchProtocol>[] = [];
  for (const system of [plain, sampled, traced]) {
    echoes.push(await system.spawn<BenchProtocol>({ name: "echo", module: actorModule }));
  }
  const contestants = echoes.map((echo) => () => askRound(echo, { step: 7 }, []));
  const [off = [], some = [], all = []] = await interleave(contestants, { numRounds, numWarmUp });
  printLine("round trip, one in 100 traced / none", medianRatio(some, off).toFixed(2));
  printLine("round trip, all traced / none", medianRatio(all, off).toFixed(2));
}
