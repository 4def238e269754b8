// What would control cost with more ranks than there are machines here?
//
//   npm run bench -- scale
//
// Measures on this machine what a message between processes over TCP, a connection and a request to a store of c10d cost the
// process that makes them, and runs the control of 8 to 1,024 ranks in virtual time with these prices (docs/concepts/scale.md).
// "as built": the head orders every rank itself, and Gloo connects every two. "tree": what it would be if each ordered 16 others, and
// one rank of each 8 were connected.
import { cpus } from "node:os";
import { Store } from "../src/collectives/index.ts";
import { type ControlCosts, simulateControl } from "../src/planner/index.ts";
import { ActorSystem } from "../src/runtime/index.ts";
import { Hub } from "../src/runtime/transport/hub/hub.ts";
import { TcpDoor } from "../src/runtime/transport/tcp/tcp-door.ts";
import { median } from "./median.ts";
import type { BenchProtocol } from "./messages/actor.ts";

const HOST = "127.0.0.1";
const NUM_ROUNDS = 7;
const NUM_ASKS = 2_000;
const NUM_HUBS = 40;
const NUM_REQUESTS = 2_000;
/** One way between two hosts of a data centre: assumed, as one machine has no way. */
const LATENCY_S = 50e-6;
const RANKS_PER_HOST = 8;
const FAN_OUT = 16;

const costs = await measure();
console.log(
  `${cpus()[0]?.model ?? "?"}, ${cpus().length} cores, Node ${process.version}, ${new Date().toISOString()}`,
);
const micro = (seconds: number) => `${(1e6 * seconds).toFixed(1)} µs`;
console.log(
  `measured: message ${micro(costs.sendS)} to send and as much to take, connection ${micro(costs.connectS)} an end, ` +
    `store ${micro(costs.storeS)} a request; assumed: ${micro(costs.latencyS)} one way`,
);
console.log(
  "ranks |  as built: start   of that meeting   step   head busy   least step for 1 %   signs of life |  tree: start   step   head busy",
);
for (let numRanks = 8; numRanks <= 1024; numRanks *= 2) {
  const built = simulateControl({ numRanks }, costs);
  const numPeers = Math.max(1, numRanks / RANKS_PER_HOST - 1);
  const tree = simulateControl({ numRanks, fanOut: FAN_OUT, numPeers }, costs);
  const ms = (seconds: number) => `${(1e3 * seconds).toFixed(seconds < 0.1 ? 2 : 0)} ms`;
  const cells = [
    [String(numRanks), 5],
    ["|", 1],
    [ms(built.startS), 16],
    [ms(built.meetingS), 17],
    [ms(built.stepS), 7],
    [ms(built.headBusyS), 11],
    [`${(100 * built.stepS).toFixed(2)} s`, 20],
    [`${(100 * built.heartbeatShare).toFixed(2)} %`, 15],
    ["|", 1],
    [ms(tree.startS), 12],
    [ms(tree.stepS), 7],
    [ms(tree.headBusyS), 11],
  ] as const;
  console.log(cells.map(([text, width]) => text.padStart(width)).join(" "));
}

async function measure(): Promise<ControlCosts> {
  const messageS = await messageSeconds();
  const connectS = await connectSeconds();
  return { sendS: messageS, receiveS: messageS, connectS, storeS: storeSeconds(), latencyS: LATENCY_S };
}

/** Processor time of this process for an ask and its answer over TCP, by two. */
async function messageSeconds(): Promise<number> {
  const preload = new URL("../src/actors/preload-apart.ts", import.meta.url);
  await using system = new ActorSystem({ name: "bench", preload, network: { host: HOST } });
  const module = new URL("./messages/actor.ts", import.meta.url);
  const to = await system.spawn<BenchProtocol>({ name: "far", module, placement: "process" });
  const ask = () => to.ask("echo", { step: 7, block: "layers.3", value: 1 }, { deadlineMs: 60_000 });
  return await rounds(async () => {
    const before = process.cpuUsage();
    // One at a time: the head's messages to many ranks share no packet, and no socket.
    for (let asked = 0; asked < NUM_ASKS; asked++) await ask();
    return processorSeconds(before) / NUM_ASKS / 2;
  });
}

/** Processor time of one end of a connection between hubs, greeted. */
async function connectSeconds(): Promise<number> {
  let index = 1;
  return await rounds(async () => {
    const heard = Promise.withResolvers<void>();
    let open = NUM_HUBS;
    const openHub = (hub: number, onControl = () => {}) =>
      Hub.open({
        index: hub,
        door: new TcpDoor({ host: HOST }),
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
    const seconds = processorSeconds(before) / NUM_HUBS / 2;
    for (const hub of [...hubs, head]) hub.close();
    return seconds;
  });
}

/** Processor time of one request to a store of this process, by two: one end asks, the other answers. */
function storeSeconds(): number {
  const port = 20_000 + (process.pid % 20_000);
  using kept = new Store({ host: HOST, port, listens: true, timeoutMs: 5_000 });
  kept.set("key", "value");
  const figures = Array.from({ length: NUM_ROUNDS }, () => {
    const before = process.cpuUsage();
    for (let request = 0; request < NUM_REQUESTS; request++) kept.read("key");
    return processorSeconds(before) / NUM_REQUESTS / 2;
  });
  return median(figures);
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
