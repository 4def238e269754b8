import { type ActorRef, ActorSystem } from "../../src/runtime/index.ts";
import type { BenchProtocol } from "./actor.ts";
import { interleave, printLine, spread } from "./rounds.ts";

const numRounds = 15;
const numWarmUp = 3;
const messagesPerRound = 50_000;

/** Messages between actors of one thread, which pass by reference. */
export async function measureSameThread(): Promise<void> {
  await using system = new ActorSystem({ name: "bench" });
  const module = new URL("./actor.ts", import.meta.url);
  const actor = await system.spawn<BenchProtocol>({ name: "actor", module, placement: "main" });
  const [statements = [], asked = []] = await interleave([() => tellRound(actor), () => askRound(actor)], {
    numRounds,
    numWarmUp,
  });
  printLine("same thread, tell, ns", spread(statements, 0));
  printLine("same thread, ask, µs", spread(asked, 2));
}

async function tellRound(actor: ActorRef<BenchProtocol>): Promise<number> {
  const startMs = performance.now();
  for (let value = 0; value < messagesPerRound; value++) {
    if (!actor.tell("note", { step: 7, block: "layers.3", value })) await actor.ready();
  }
  await actor.ask("counted", messagesPerRound, { deadlineMs: 60_000 });
  return ((performance.now() - startMs) * 1e6) / messagesPerRound;
}

async function askRound(actor: ActorRef<BenchProtocol>): Promise<number> {
  const startMs = performance.now();
  for (let value = 0; value < messagesPerRound; value++)
    await actor.ask("echo", value, { deadlineMs: 10_000 });
  return ((performance.now() - startMs) * 1_000) / messagesPerRound;
}
