import { ActorSystem } from "../../src/runtime/index.ts";
import type { BenchProtocol } from "./actor.ts";
import { printLine, spread } from "./rounds.ts";

const numRounds = 15;
const numWarmUp = 2;
const module = new URL("./actor.ts", import.meta.url);

/** Measures the time until a failure is noticed, and until the actor runs again. */
export async function measureLife(): Promise<void> {
  const notified: number[] = [];
  const restarted: number[] = [];
  const spawned: number[] = [];
  await using system = new ActorSystem({ name: "bench" });
  let restart = Promise.withResolvers<void>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_one",
    restarts: numRounds + numWarmUp,
    children: [{ name: "mortal", module }],
    onRestart: () => restart.resolve(),
  });
  for (let round = -numWarmUp; round < numRounds; round++) {
    const mortal = supervisor.ref<BenchProtocol>("mortal");
    const failedAt = new Float64Array(new SharedArrayBuffer(8));
    restart = Promise.withResolvers<void>();
    const down = new Promise<void>((resolve) => system.watch(mortal, () => resolve()));
    mortal.tell("fail", failedAt);
    await down;
    const downMs = performance.timeOrigin + performance.now();
    await restart.promise;
    const backMs = performance.timeOrigin + performance.now();
    const spawnMs = performance.now();
    const fresh = await system.spawn<BenchProtocol>({ name: `fresh-${round}`, module });
    const spawnedMs = performance.now() - spawnMs;
    await system.stopActor(fresh);
    if (round < 0) continue;
    notified.push(downMs - (failedAt[0] as number));
    restarted.push(backMs - (failedAt[0] as number));
    spawned.push(spawnedMs);
  }
  printLine("failure until its watcher knows, ms", spread(notified, 2));
  printLine("failure to actor restarted, ms", spread(restarted));
  printLine("spawn of an actor on a thread, ms", spread(spawned));
}
