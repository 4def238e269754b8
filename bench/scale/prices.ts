// Measures the costs of control on this machine that the simulation in virtual time needs.
import { fork } from "node:child_process";
import { once } from "node:events";
import { actorModules } from "../../src/actors/index.ts";
import { preloads } from "../../src/actors/preload/index.ts";
import { Store } from "../../src/compute/collectives/index.ts";
import { ActorSystem, type SpawnOptions } from "../../src/runtime/index.ts";
import { ActorRef, type Sender } from "../../src/runtime/messaging/actor-ref.ts";
import { Hub } from "../../src/runtime/transport/hub/hub.ts";
import { TcpDoor } from "../../src/runtime/transport/tcp/tcp-door.ts";
import { median } from "../measure/median.ts";
import type { BenchProtocol } from "../messages/actor.ts";
import type { Questions } from "./asker.ts";
import type { ControlCosts } from "./control-plane.ts";

const HOST = "127.0.0.1";
const NUM_ROUNDS = 7;
const NUM_ASKS = 2_000;
const NUM_HUBS = 40;
const NUM_PARTS = 200;
const NUM_ORDERS = 50;
const KEY = "addresses";
/** Clients that ask the store at once. */
export const NUM_ASKERS = 16;
const NUM_REQUESTS = 2_000;
const NUM_READS = 100;
/** Few: where no name server answers, each that connects waits for that. */
const NUM_OPENS = 1;
/** Bytes that Gloo stores for one member, its length included, and the number of members. */
const ADDRESS_BYTES = 4 + 160;
export const NUM_ADDRESSES = 1_024;
/** Requests of `Store.read`: whether it is there, to wait for it, and what it is. */
const READ_REQUESTS = 3;
/** One way between two hosts of a data centre: assumed, as one machine has no way. */
const LATENCY_S = 50e-6;
/** A sender of refs that are named and never used. */
const NOBODY: Sender = { tell: () => false, ask: () => Promise.reject(), ready: () => Promise.reject() };

/** As a shard and its rank answer for a step. */
const PART = {
  gradientNorm: 0.7,
  skipped: false,
  reduceMs: 1.5,
  updateMs: 2.5,
  lossesNats: [1.7123, 1.7124],
  learningRate: 1e-3,
  waits: { exposedMs: 1.1, gatherMs: 2.2, dataMs: 0.3 },
  numSamples: 12,
};

const preload = preloads.severalHosts;

/** Measures the costs of control here; the latency between two hosts is assumed. */
export async function measuredPrices(): Promise<ControlCosts> {
  const { messageS, ...ofMessages } = await messageSeconds();
  return {
    sendS: messageS,
    receiveS: messageS,
    ...ofMessages,
    ...(await bootSeconds()),
    ...(await hubSeconds()),
    ...(await birthSeconds()),
    ...(await storeSeconds(NUM_ASKERS)),
    storeStartS: await keepSeconds(),
    latencyS: LATENCY_S,
  };
}

/**
 * Processor time of this process for an ask and its answer over TCP, by two; for one part of a message of many; and for an actor, and a
 * host's store, that a message names.
 */
async function messageSeconds(): Promise<
  Pick<ControlCosts, "partS" | "refS" | "storeNameS"> & { messageS: number }
> {
  await using system = new ActorSystem({ name: "bench", preload, network: { host: HOST } });
  const module = new URL("../messages/actor.ts", import.meta.url);
  const to = await system.spawn<BenchProtocol>({ name: "far", module, placement: "process" });
  // One at a time: the head's messages to many ranks share no packet, and no socket.
  const askSeconds = (numAsks: number, parts: readonly unknown[]) =>
    rounds(async () => {
      const before = process.cpuUsage();
      for (let asked = 0; asked < numAsks; asked++)
        await to.ask("echo", { step: 7, block: "layers.3", value: 1, parts } as never, {
          deadlineMs: 60_000,
        });
      return processorSeconds(before) / numAsks / 2;
    });
  const messageS = await askSeconds(NUM_ASKS, []);
  const many = await askSeconds(NUM_ASKS / 10, Array<typeof PART>(NUM_PARTS).fill(PART));
  const others = Array.from({ length: NUM_PARTS }, (_, index) => {
    const address = { ...to.address, uid: 1_000 + index, name: `shard-${index}` };
    return new ActorRef<BenchProtocol>(NOBODY, { address });
  });
  const naming = await askSeconds(NUM_ASKS / 10, others);
  const stores = Object.fromEntries(others.map((_, host) => [host, `store:10.0.${host}.17:40123`]));
  const telling = await askSeconds(NUM_ASKS / 10, [stores]);
  const partOf = (seconds: number) => (seconds - messageS) / NUM_PARTS;
  return { messageS, partS: partOf(many), refS: partOf(naming), storeNameS: partOf(telling) };
}

/** How long a rank's process takes to be there, and each of its actors in it: the median of some. */
async function bootSeconds(): Promise<Pick<ControlCosts, "bootS" | "actorS">> {
  await using system = new ActorSystem({ name: "bench", preload, network: { host: HOST } });
  const figures: { process: number; actor: number }[] = [];
  for (let round = 0; round < NUM_ROUNDS; round++) {
    const place = { placement: "process", process: `rank-${round}` } as const;
    const secondsOf = async (options: SpawnOptions<unknown>) => {
      const begin = performance.now();
      await system.spawn<never, unknown>(options);
      return (performance.now() - begin) / 1e3;
    };
    const shard = { name: `shard-${round}`, module: actorModules.shard, init: { rank: 0 } };
    const process = await secondsOf({ ...shard, ...place });
    const rank = { name: `rank-${round}`, module: actorModules.rank, init: { rank: 0 } };
    figures.push({ process, actor: await secondsOf({ ...rank, ...place }) });
  }
  const actorS = median(figures.map(({ actor }) => actor));
  // The first has started its shard, too.
  return { bootS: median(figures.map(({ process, actor }) => process - actor)), actorS };
}

/** Measures the head's cost for one of many processes, by starts.ts. */
async function birthSeconds(): Promise<Pick<ControlCosts, "spawnS" | "beatS">> {
  const head = fork(new URL("./starts.ts", import.meta.url));
  const [figures] = await once(head, "message");
  return figures;
}

/** Processor time of one end of a connection between hubs, greeted; and of an order, of which many go at once. */
async function hubSeconds(): Promise<{ connectS: number; orderS: number }> {
  let index = 1;
  const figures: { connectS: number; orderS: number }[] = [];
  for (let round = 0; round < NUM_ROUNDS; round++) {
    let heard = Promise.withResolvers<void>();
    let open = NUM_HUBS;
    const openHub = (hub: number, onControl = () => {}) =>
      Hub.open({
        index: hub,
        door: new TcpDoor({ host: HOST, heartbeat: { everyMs: 60_000, lostAfter: 1 } }),
        token: "token",
        maxFrameBytes: 1 << 20,
        onControl,
        onLost: () => {},
      });
    const head = await openHub(0, () => {
      open -= 1;
      if (open === 0) heard.resolve();
    });
    const hubs = await Promise.all(Array.from({ length: NUM_HUBS }, () => openHub(index++)));
    const before = process.cpuUsage();
    for (const hub of hubs) {
      hub.know(0, head.address);
      hub.control(0, new Uint8Array(1));
    }
    await heard.promise;
    const connectS = processorSeconds(before) / NUM_HUBS / 2;
    heard = Promise.withResolvers<void>();
    open = NUM_HUBS * NUM_ORDERS;
    const ordering = process.cpuUsage();
    const order = new TextEncoder().encode(JSON.stringify({ kind: "route", ...PART }));
    for (let turn = 0; turn < NUM_ORDERS; turn++) for (const hub of hubs) hub.control(0, order);
    await heard.promise;
    const orderS = processorSeconds(ordering) / (NUM_HUBS * NUM_ORDERS) / 2;
    figures.push({ connectS, orderS });
    for (const hub of [...hubs, head]) hub.close();
  }
  const of = (name: keyof (typeof figures)[number]) => median(figures.map((each) => each[name]));
  return { connectS: of("connectS"), orderS: of("orderS") };
}

/** Processor time of a process, to have its first store that others can ask. */
function keepSeconds(): Promise<number> {
  return rounds(async () => {
    const [seconds] = await once(fork(new URL("./keeper.ts", import.meta.url)), "message");
    return seconds;
  });
}

/**
 * Processor time of a store that this process keeps, while it waits, and so many others ask it without a pause: of one request, of one who
 * comes and leaves, and of one address in an answer that has all. What the askers pay is theirs.
 */
export async function storeSeconds(
  numAskers: number,
): Promise<Pick<ControlCosts, "storeS" | "openS" | "addressS">> {
  const port = 20_000 + (process.pid % 20_000);
  using kept = new Store({ host: HOST, port, listens: true, timeoutMs: 5_000 });
  kept.set(KEY, "a".repeat(NUM_ADDRESSES * ADDRESS_BYTES));
  const script = new URL("./asker.ts", import.meta.url);
  const askers = Array.from({ length: numAskers }, () => fork(script, [String(port), KEY]));
  const answers = () => Promise.all(askers.map((asker) => once(asker, "message")));
  await answers();
  const answer = (questions: Questions) =>
    rounds(async () => {
      const before = process.cpuUsage();
      const answered = answers();
      for (const asker of askers) asker.send(questions);
      await answered;
      return processorSeconds(before) / numAskers;
    });
  const storeS = (await answer({ opens: 0, adds: NUM_REQUESTS, reads: 0 })) / NUM_REQUESTS;
  const readS = (await answer({ opens: 0, adds: 0, reads: NUM_READS })) / NUM_READS;
  const openS = (await answer({ opens: NUM_OPENS, adds: 0, reads: 0 })) / NUM_OPENS;
  for (const asker of askers) asker.kill();
  return { storeS, openS, addressS: (readS - READ_REQUESTS * storeS) / NUM_ADDRESSES };
}

async function rounds(figure: () => Promise<number>): Promise<number> {
  const figures: number[] = [];
  for (let round = 0; round < NUM_ROUNDS; round++) figures.push(await figure());
  return median(figures);
}

function processorSeconds(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
