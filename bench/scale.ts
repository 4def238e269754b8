// What would control cost with more ranks than there are machines here?
//
//   npm run bench -- scale
//
// Measures on this machine what messages between processes over TCP, signs of life, connections, requests to a store of c10d and
// the start of a process cost those that make them, and runs the control of 8 to 1,024 ranks in virtual time with these prices
// (docs/concepts/scale.md): hosts of 8 ranks that split each layer, up to 16 stages, replicas beyond.
import { fork } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { readArguments } from "../scripts/arguments.mjs";
import { Store } from "../src/collectives/index.ts";
import { rowLength } from "../src/engine/shard/index.ts";
import { type ControlCosts, simulateControl } from "../src/planner/index.ts";
import { ActorSystem } from "../src/runtime/index.ts";
import { ActorRef, type Sender } from "../src/runtime/messaging/actor-ref.ts";
import { Hub } from "../src/runtime/transport/hub/hub.ts";
import { TcpDoor } from "../src/runtime/transport/tcp/tcp-door.ts";
import { median } from "./median.ts";
import type { BenchProtocol } from "./messages/actor.ts";
import type { Questions } from "./scale/asker.ts";

const HOST = "127.0.0.1";
const NUM_ROUNDS = 7;
const NUM_ASKS = 2_000;
const NUM_HUBS = 40;
const NUM_PARTS = 200;
const NUM_ORDERS = 50;
const BEAT_MS = 10;
const NUM_BEATS = 50;
const KEY = "addresses";
const NUM_ASKERS = 16;
const NUM_REQUESTS = 2_000;
const NUM_READS = 100;
/** Few: c10d asks for the name of the other end's address each time, which a server of names may take long for. */
const NUM_OPENS = 5;
/** What of a member Gloo leaves in the store, and all of them together; each behind its length. */
const ADDRESS_BYTES = 4 + 160;
const NUM_ADDRESSES = 1_024;
/** Requests of `Store.read`: whether it is there, to wait for it, and what it is. */
const READ_REQUESTS = 3;
/** One way between two hosts of a data centre: assumed, as one machine has no way. */
const LATENCY_S = 50e-6;
const RANKS_PER_HOST = 8;
const MOST_STAGES = 16;
/** As `hostTree` has it. */
const FAN_OUT = 16;

/** Whose refs are named and never used. */
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

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

readArguments("usage: npm run bench -- scale", {});
const alone = await storeSeconds(1);
const costs = await measure();
console.log(
  `${cpus()[0]?.model ?? "?"}, ${cpus().length} cores, Node ${process.version}, ${new Date().toISOString()}`,
);
const micro = (seconds: number) => `${(1e6 * seconds).toFixed(1)} µs`;
console.log(
  `measured: message ${micro(costs.sendS)} to send and as much to take, ${micro(costs.partS)} a rank's part of a gathered one, ${micro(costs.refS)} an actor that it names, ` +
    `order ${micro(costs.orderS)}, sign of life ${micro(costs.beatS)}, connection ${micro(costs.connectS)} an end, ` +
    `process ${costs.bootS.toFixed(2)} s; assumed: ${micro(costs.latencyS)} one way`,
);
console.log(
  `the store: ${micro(costs.openS)} a connection, ${micro(costs.storeS)} a request and ${(1e9 * costs.addressS).toFixed(0)} ns an address in an answer of ${NUM_ADDRESSES}, asked by ${NUM_ASKERS} processes at once; ` +
    `${micro(alone.openS)}, ${micro(alone.storeS)} and ${(1e9 * alone.addressS).toFixed(0)} ns by one`,
);
console.log(
  "ranks |    start   born  joined  ordered     met   times 8 ranks'  log N's |     step  messages  statistics  messages  head busy  least step for 1 %  signs of life",
);
const simulated = [8, 16, 32, 64, 128, 256, 512, 1024].map((numRanks) => {
  const stages = Math.min(MOST_STAGES, numRanks / RANKS_PER_HOST);
  const ofModel = RANKS_PER_HOST * stages;
  const replicas = numRanks / ofModel;
  const hops = [ofModel, replicas].flatMap((size) => [rowLength(size), size / rowLength(size)]);
  // Gradients go to all replicas; activations to the stage before and the one behind.
  const numPeers = sum(hops.slice(0, 2).map((size) => size - 1)) + replicas - 1 + Math.min(2, stages - 1);
  const groupSizes = [RANKS_PER_HOST, stages, numRanks];
  const shape = { numRanks, ranksPerHost: RANKS_PER_HOST, fanOut: FAN_OUT, hops, numPeers, groupSizes };
  return { numRanks, ...simulateControl(shape, costs) };
});
const least = simulated[0]?.startS ?? Number.NaN;
for (const { numRanks, ...control } of simulated) {
  const ms = (seconds: number) => `${(1e3 * seconds).toFixed(seconds < 0.1 ? 2 : 0)} ms`;
  const cells = [
    [String(numRanks), 5],
    ["|", 1],
    [`${control.startS.toFixed(2)} s`, 8],
    [`${control.bornS.toFixed(2)}`, 6],
    [`${control.joinedS.toFixed(2)}`, 7],
    [`${control.orderedS.toFixed(2)}`, 8],
    [`${control.metS.toFixed(2)} s`, 8],
    [`${(control.startS / least).toFixed(2)}`, 15],
    [`${(Math.log(numRanks) / Math.log(8)).toFixed(2)}`, 8],
    ["|", 1],
    [ms(control.stepS), 8],
    [String(control.stepMessages), 9],
    [ms(control.statisticsS), 11],
    [String(control.statisticsMessages), 9],
    [ms(control.headBusyS), 10],
    [`${(100 * (control.stepS + control.statisticsS)).toFixed(2)} s`, 19],
    [`${(100 * control.heartbeatShare).toFixed(2)} %`, 14],
  ] as const;
  console.log(cells.map(([text, width]) => text.padStart(width)).join(" "));
}

async function measure(): Promise<ControlCosts> {
  const { messageS, partS, refS, bootS } = await messageSeconds();
  const { connectS, orderS, beatS } = await hubSeconds();
  return {
    sendS: messageS,
    receiveS: messageS,
    partS,
    refS,
    orderS,
    beatS,
    connectS,
    ...(await storeSeconds(NUM_ASKERS)),
    bootS,
    latencyS: LATENCY_S,
  };
}

/**
 * Processor time of this process for an ask and its answer over TCP, by two; for one part of a message of many; and how long a process
 * takes to be there.
 */
async function messageSeconds(): Promise<
  Pick<ControlCosts, "partS" | "refS" | "bootS"> & { messageS: number }
> {
  const preload = new URL("../src/actors/preload-apart.ts", import.meta.url);
  await using system = new ActorSystem({ name: "bench", preload, network: { host: HOST } });
  const module = new URL("./messages/actor.ts", import.meta.url);
  const begin = performance.now();
  const to = await system.spawn<BenchProtocol>({ name: "far", module, placement: "process" });
  const bootS = (performance.now() - begin) / 1e3;
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
  const partOf = (seconds: number) => (seconds - messageS) / NUM_PARTS;
  return { messageS, partS: partOf(many), refS: partOf(naming), bootS };
}

/** Processor time of one end of a connection between hubs, greeted; of an order, of which many go at once; and of a sign of life. */
async function hubSeconds(): Promise<{ connectS: number; orderS: number; beatS: number }> {
  let index = 1;
  const figures: { connectS: number; orderS: number; beatS: number }[] = [];
  for (let round = 0; round < NUM_ROUNDS; round++) {
    let heard = Promise.withResolvers<void>();
    let open = NUM_HUBS;
    const openHub = (hub: number, everyMs: number, onControl = () => {}) =>
      Hub.open({
        index: hub,
        door: new TcpDoor({ host: HOST, heartbeat: { everyMs, lostAfter: 1_000 } }),
        token: "token",
        maxFrameBytes: 1 << 20,
        onControl,
        onLost: () => {},
      });
    const head = await openHub(0, 60_000, () => {
      open -= 1;
      if (open === 0) heard.resolve();
    });
    const hubs = await Promise.all(Array.from({ length: NUM_HUBS }, () => openHub(index++, BEAT_MS)));
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
    const beating = process.cpuUsage();
    await pause(NUM_BEATS * BEAT_MS);
    figures.push({ connectS, orderS, beatS: processorSeconds(beating) / (NUM_BEATS * NUM_HUBS) / 2 });
    for (const hub of [...hubs, head]) hub.close();
  }
  const of = (name: keyof (typeof figures)[number]) => median(figures.map((each) => each[name]));
  return { connectS: of("connectS"), orderS: of("orderS"), beatS: of("beatS") };
}

/**
 * Processor time of a store that this process keeps, while it waits, and so many others ask it without a pause: of one who comes, and leaves;
 * of one request; and of one address in an answer that has all. What the askers pay is theirs.
 */
async function storeSeconds(numAskers: number): Promise<Pick<ControlCosts, "openS" | "storeS" | "addressS">> {
  const port = 20_000 + (process.pid % 20_000);
  using kept = new Store({ host: HOST, port, listens: true, timeoutMs: 5_000 });
  kept.set(KEY, "a".repeat(NUM_ADDRESSES * ADDRESS_BYTES));
  const script = new URL("./scale/asker.ts", import.meta.url);
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
  const none = { opens: 0, adds: 0, reads: 0 };
  const openS = (await answer({ ...none, opens: NUM_OPENS })) / NUM_OPENS;
  const storeS = (await answer({ ...none, adds: NUM_REQUESTS })) / NUM_REQUESTS;
  const readS = (await answer({ ...none, reads: NUM_READS })) / NUM_READS;
  for (const asker of askers) asker.kill();
  return { openS, storeS, addressS: (readS - READ_REQUESTS * storeS) / NUM_ADDRESSES };
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
