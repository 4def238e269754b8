import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { ActorSystem } from "../../src/runtime/index.ts";
import type { BenchProtocol } from "./actor.ts";
import { rawThread } from "./round-trips.ts";
import { interleave, medianRatio, printLine, type Rounds, spread } from "./rounds.ts";

const numRounds = 15;
const numWarmUp = 3;
const messagesPerRound = 50_000;
const actorModule = new URL("./actor.ts", import.meta.url);

/** Messages one way between two threads, as fast as they go; over when the receiver has counted them all. */
export async function measureThroughput(): Promise<void> {
  await using system = new ActorSystem({ name: "bench" });
  const to = await system.spawn<BenchProtocol>({ name: "counter", module: actorModule });
  const sender = await system.spawn<BenchProtocol>({ name: "sender", module: actorModule });
  const { port1, port2 } = new MessageChannel();
  const rawCounter = rawThread({ role: "count", port: port2 });
  const rawSender = rawThread({ role: "send", port: port1 });

  const raw = async (): Promise<number> => {
    const counted = once(rawCounter, "message");
    const startMs = performance.now();
    rawCounter.postMessage(messagesPerRound);
    rawSender.postMessage(messagesPerRound);
    await counted;
    return perSecond(startMs);
  };
  const ours = async (batched: boolean): Promise<number> => {
    const startMs = performance.now();
    const counted = to.ask("counted", messagesPerRound, { deadlineMs: 60_000 });
    await sender.ask("send", { to, count: messagesPerRound, batched }, { deadlineMs: 60_000 });
    await counted;
    return perSecond(startMs);
  };
  const contestants = [raw, () => ours(false), () => ours(true)];
  const [rawRounds = [], single = [], batched = []] = await interleave(contestants, { numRounds, numWarmUp });
  printLine("one way, a message a packet: plain, M/s", millions(rawRounds));
  printLine("one way, a message a packet: tell and flush, M/s", millions(single));
  printLine("  tell / plain", medianRatio(single, rawRounds).toFixed(2));
  printLine("one way, a packet a turn: tell, M/s", millions(batched));
  printLine("  tell / plain", medianRatio(batched, rawRounds).toFixed(2));
  await Promise.all([rawCounter.terminate(), rawSender.terminate()]);
}

function perSecond(startMs: number): number {
  return (messagesPerRound * 1_000) / (performance.now() - startMs);
}

function millions(rounds: Rounds): string {
  return spread(
    rounds.map((figure) => figure / 1e6),
    2,
  );
}
