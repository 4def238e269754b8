import { type ActorRef, ActorSystem } from "../../src/runtime/index.ts";
import type { BenchProtocol } from "./actor.ts";
import { interleave, medianRatio, printLine, spread } from "./rounds.ts";
import type { TensorEchoProtocol } from "./tensor-echo.ts";

const rounds = { numRounds: 9, numWarmUp: 2 };
const tripsPerRound = 1_000;
const messagesPerRound = 50_000;
const tensorTripsPerRound = 100;
const numDeaths = 9;
const deadlineMs = 60_000;
const module = new URL("./actor.ts", import.meta.url);
const preload = new URL("../../src/actors/preload/one-host.ts", import.meta.url);
const small = { step: 7, block: "layers.3", value: 1 };

type Pair = readonly [ActorRef<BenchProtocol>, ActorRef<BenchProtocol>];

/** Measures actors in processes of their own beside the same actors on threads: messages, tensors, starts and failures. */
export async function measureProcesses(): Promise<void> {
  await compareMessages();
  await measureTensors();
  await measureDeaths();
}

async function compareMessages(): Promise<void> {
  await using system = new ActorSystem({ name: "bench", preload });
  const cast: Pair[] = [];
  for (const placement of ["thread", "process"] as const) {
    const spawn = (name: string) =>
      system.spawn<BenchProtocol>({ name: `${placement}-${name}`, module, placement });
    cast.push([await spawn("near"), await spawn("far")]);
  }
  const compare = async (what: string, unit: string, figure: (pair: Pair) => Promise<number>) => {
    const [threads = [], processes = []] = await interleave(
      cast.map((pair) => () => figure(pair)),
      rounds,
    );
    const digits = unit === "M/s" ? 2 : 1;
    printLine(`${what}: threads, ${unit}`, spread(threads, digits));
    printLine(`${what}: processes, ${unit}`, spread(processes, digits));
    printLine("  processes / threads", medianRatio(processes, threads).toFixed(2));
  };
  await compare("round trip from the main thread", "µs", ([to]) => askRound(to));
  await compare("round trip of a blocking thread", "µs", ([waiter, on]) =>
    waiter.ask("wait", { on, count: tripsPerRound }, { deadlineMs }),
  );
  await compare("one way, a packet a turn", "M/s", ([sender, to]) => sendRound(sender, to));
}

async function askRound(to: ActorRef<BenchProtocol>): Promise<number> {
  const startMs = performance.now();
  for (let trip = 0; trip < tripsPerRound; trip++) await to.ask("echo", small, { deadlineMs });
  return ((performance.now() - startMs) * 1_000) / tripsPerRound;
}

async function sendRound(sender: ActorRef<BenchProtocol>, to: ActorRef<BenchProtocol>): Promise<number> {
  const startMs = performance.now();
  const counted = to.ask("counted", messagesPerRound, { deadlineMs });
  await sender.ask("send", { to, count: messagesPerRound, batched: true }, { deadlineMs });
  await counted;
  return messagesPerRound / (performance.now() - startMs) / 1_000;
}

/** Shared memory's bytes stay where they are; a tensor of a process's own is copied at its first crossing. */
async function measureTensors(): Promise<void> {
  await using system = new ActorSystem({ name: "bench", preload });
  const echo = new URL("./tensor-echo.ts", import.meta.url);
  const on = await system.spawn<TensorEchoProtocol>({ name: "echo", module: echo, placement: "process" });
  const asker = await system.spawn<TensorEchoProtocol>({ name: "asker", module: echo, placement: "process" });
  const trips = (numel: number) => () =>
    asker.ask("trips", { on, numel, count: tensorTripsPerRound, shared: true }, { deadlineMs });
  const [little = [], large = []] = await interleave([trips(1 << 18), trips(1 << 28)], rounds);
  printLine("shared tensor there and back, 1 MiB, µs", spread(little));
  printLine("shared tensor there and back, 1 GiB, µs", spread(large));
  printLine("  1 GiB / 1 MiB", medianRatio(large, little).toFixed(2));
}

async function measureDeaths(): Promise<void> {
  await using system = new ActorSystem({ name: "bench", preload });
  const noticed: number[] = [];
  const restarted: number[] = [];
  let restart = Promise.withResolvers<void>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    restarts: numDeaths,
    children: ["mortal", "other"].map((name) => ({ name, module, placement: "process" })),
    onRestart: () => restart.resolve(),
  });
  for (let death = 0; death < numDeaths; death++) {
    restart = Promise.withResolvers<void>();
    const mortal = supervisor.ref<BenchProtocol>("mortal");
    const down = new Promise<void>((resolve) => system.watch(mortal, () => resolve()));
    const pid = system.inspect().find(({ actor }) => actor === "mortal")?.pid as number;
    const killedMs = performance.now();
    process.kill(pid, "SIGKILL");
    await down;
    noticed.push(performance.now() - killedMs);
    await restart.promise;
    restarted.push(performance.now() - killedMs);
  }
  printLine("kill -9 of a process until its watcher knows, ms", spread(noticed));
  printLine("kill -9 to two processes started again, ms", spread(restarted, 0));
}
