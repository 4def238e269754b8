import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ActorRef, ActorSystem, Addressed, Network } from "../../src/runtime/index.ts";
import type { SenderProtocol } from "./actors/sender.ts";
import type { SinkInit, SinkProtocol } from "./actors/sink.ts";
import { actorModule, type EventLog, sharedWords, startSystem } from "./start-system.ts";

const deadlineMs = 60_000;
const preload = new URL("./actors/preload.ts", import.meta.url);
/** Who is held here is to be late, not lost. */
const patient: Network = { host: "127.0.0.1", heartbeat: { everyMs: 200, lostAfter: 1_000 } };
const doors: [string, Network | undefined][] = [
  ["Unix sockets", undefined],
  ["a network", patient],
];
/** What a process that leaves at once takes for it, by far. */
const leavesWithinMs = 500;

interface Pair {
  readonly system: ActorSystem;
  readonly log: EventLog;
  readonly sender: ActorRef<SenderProtocol>;
  readonly sink: ActorRef<SinkProtocol>;
  /** How often the sink has received each number. */
  readonly counts: Int32Array;
  pidOf(actor: Addressed): number;
}

/** A sender and a sink, each in a process of its own, that take `numValues` numbers. */
async function startPair(network: Network | undefined, numValues: number): Promise<Pair> {
  const { system, log } = startSystem({ preload, ...(network && { network }) });
  const { path: countsPath, words: counts } = sharedWords(numValues);
  const [sender, sink] = await Promise.all([
    system.spawn<SenderProtocol>({ name: "sender", module: actorModule("sender"), placement: "process" }),
    system.spawn<SinkProtocol, SinkInit>({
      name: "sink",
      module: actorModule("sink"),
      init: { countsPath },
      placement: "process",
    }),
  ]);
  const pidOf = ({ address }: Addressed) =>
    system.inspect().find(({ actor }) => actor === address.name)?.pid as number;
  return { system, log, sender, sink, counts, pidOf };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

/** Stops `held`, has `end` end an actor of process `leaving`, and lets `held` go on when that process has had time to leave. */
async function endUnheard(held: number, leaving: number, end: () => Promise<unknown>): Promise<void> {
  process.kill(held, "SIGSTOP");
  try {
    await until(() => readFileSync(`/proc/${held}/stat`, "utf8").includes(") T "));
    await end();
    const latestMs = performance.now() + leavesWithinMs;
    await until(() => !existsSync(`/proc/${leaving}/stat`) || performance.now() > latestMs);
  } finally {
    process.kill(held, "SIGCONT");
  }
}

test.each(doors)(
  "DL-1 what an actor has taken is no dead letter to a sender whose process hears late of its end, by %s",
  async (_door, network) => {
    const numValues = 18;
    const { system, sender, sink, counts, pidOf } = await startPair(network, numValues);
    // Fewer than half a window: the sink's process has said nothing to the sender's when it leaves.
    await sender.ask("burst", { to: sink, from: 0, count: numValues }, { deadlineMs });
    await until(() => counts.every((count) => count === 1));
    await endUnheard(pidOf(sender), pidOf(sink), () => system.stopActor(sink));
    const down = Promise.withResolvers<void>();
    system.watch(sink, () => down.resolve());
    await down.promise;
    // One more is lost: whoever is told that has been told of all before it.
    await sender.ask("burst", { to: sink, from: 0, count: 1 }, { deadlineMs });
    await until(() => system.deadLetters.count("Stopped") > 0);
    expect(system.deadLetters.count()).toBe(1);
  },
);

test.each(doors)(
  "DL-4 the last words of an actor are heard however late and long, the first that its process says there too, by %s",
  async (_door, network) => {
    const { sender, sink, counts, log, pidOf } = await startPair(network, 1);
    await sender.ask("connect", sink, { deadlineMs });
    sink.tell("watch", sender);
    await log.untilEmitted({ watching: "sender" });
    // More than lies in a socket while nobody reads.
    const words = { to: sink, as: "long ".repeat(4 << 20), value: 0 };
    await endUnheard(pidOf(sink), pidOf(sender), () => {
      sender.tell("farewell", words);
      return log.until(({ kind }) => kind === "actor.stopped");
    });
    // The words are taken in before the news of the end, and handled before a later question.
    await log.untilEmitted({ down: "sender", reason: "stopped" });
    await sink.ask("taken", null, { deadlineMs });
    expect(counts[0]).toBe(1);
  },
);
