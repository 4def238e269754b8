// Measures the cost of starts and heartbeats for the head of many processes. All of it is real but for the processes, which two
// programs play (far-host.ts). Forked by prices.ts, to which it sends its figures.
import { fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { ActorSystem } from "../../src/runtime/index.ts";
import type { ControlCosts } from "./control-plane.ts";
import { PATIENT } from "./patient-network.ts";

/** Each plays half of the hosts. */
const NUM_PROGRAMS = 2;
const RANKS_PER_HOST = 8;
/** Starts to warm up: most of a thousand starts run compiled code. */
const NUM_BEFORE = 64;
const NUM_BIRTHS = 192;
const NUM_BEATS = 10;
const NUM_HOSTS = (NUM_BEFORE + NUM_BIRTHS) / RANKS_PER_HOST;

const preload = new URL("../../src/actors/preload/apart.ts", import.meta.url);
const module = new URL("../messages/actor.ts", import.meta.url);
const system = new ActorSystem({
  name: "head",
  preload,
  network: PATIENT,
  hosts: {
    count: 1 + NUM_HOSTS,
    about: "",
    placeOf,
    onJoined() {},
    onLost: (_host, { message }) => refuse(message),
    onSignal() {},
  },
});
const invitation = JSON.stringify(await system.invite());
const script = new URL("./far-host.ts", import.meta.url);
const places = Array.from({ length: NUM_HOSTS }, (_, index) => 1 + index);
for (let program = 0; program < NUM_PROGRAMS; program++) {
  const played = places.filter((place) => place % NUM_PROGRAMS === program);
  fork(script, [invitation, JSON.stringify(played), preload.href]);
}
await system.hostsJoined(60_000);
await bear("before", NUM_BEFORE);
const spawnS = (await processorSeconds(() => bear("measured", NUM_BIRTHS))) / NUM_BIRTHS;
const beats = await processorSeconds(() => pause(NUM_BEATS * (PATIENT.heartbeat?.everyMs ?? 0)));
const beatS = beats / NUM_BEATS / (NUM_BEFORE + NUM_BIRTHS);
process.send?.({ spawnS, beatS } satisfies Pick<ControlCosts, "spawnS" | "beatS">, () => process.exit(0));

/** Ranks that follow each other live on one host. */
function placeOf(process: string): number {
  const [name, rank] = process.split("-");
  return 1 + Math.floor(((name === "before" ? 0 : NUM_BEFORE) + Number(rank)) / RANKS_PER_HOST);
}

/** A process for each rank, with a shard and a rank: as a rank group is started. */
async function bear(name: string, numRanks: number): Promise<void> {
  const ranks = Array.from({ length: numRanks }, (_, rank) => rank);
  await system.supervise({
    name,
    strategy: "one_for_all",
    children: ["shard", "rank"].map((role) =>
      ranks.map((rank) => ({
        name: `${name}-${role}-${rank}`,
        module,
        placement: "process",
        process: `${name}-${rank}`,
      })),
    ),
  });
}

/** Processor time of this thread while `body` runs, in seconds. */
async function processorSeconds(body: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage();
  await body();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1e6;
}

function refuse(message: string): never {
  console.error(message);
  process.exit(1);
}
