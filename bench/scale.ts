// Estimates the cost of control with more ranks than there are machines here.
//
//   npm run bench -- scale
//
// Measures on this machine the cost of messages between processes over TCP, starts, heartbeats, connections and requests to a store of
// c10d, and runs the control of 8 to 1,024 ranks in virtual time with these prices
// (docs/internals/scale.md): hosts of 8 ranks that split each layer, up to 16 stages, replicas beyond.
import { readArguments } from "../scripts/arguments.mjs";
import { rowLength } from "../src/actors/shard/index.ts";
import { machine } from "./measure/machine.ts";
import { simulateControl } from "./scale/control-plane.ts";
import { groupsAt } from "./scale/meetings.ts";
import { measuredPrices, NUM_ADDRESSES, NUM_ASKERS, storeSeconds } from "./scale/prices.ts";

const RANKS_PER_HOST = 8;
const MOST_STAGES = 16;
/** As `hostTree` has it. */
const FAN_OUT = 16;

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

readArguments("usage: npm run bench -- scale", {});
const alone = await storeSeconds(1);
const costs = await measuredPrices();
console.log(machine());
const micro = (seconds: number) => `${(1e6 * seconds).toFixed(1)} µs`;
console.log(
  `measured: message ${micro(costs.sendS)} to send and as much to take, ${micro(costs.partS)} a rank's part of a gathered one, ${micro(costs.refS)} an actor that it names, ` +
    `order ${micro(costs.orderS)}, connection ${micro(costs.connectS)} an end; ` +
    `process ${costs.bootS.toFixed(2)} s, actor ${costs.actorS.toFixed(2)} s until it is there; ` +
    `the head: start of a rank ${micro(costs.spawnS)}, heartbeats ${micro(costs.beatS)} a process and beat; assumed: ${micro(costs.latencyS)} one way`,
);
console.log(
  `a store: ${(1e3 * costs.storeStartS).toFixed(1)} ms until it is there, ${micro(costs.storeNameS)} where a message names it, ${micro(costs.openS)} a connection, ${micro(costs.storeS)} a request and ${(1e9 * costs.addressS).toFixed(0)} ns an address in an answer of ${NUM_ADDRESSES}, asked by ${NUM_ASKERS} processes at once; ` +
    `${micro(alone.openS)}, ${micro(alone.storeS)} and ${(1e9 * alone.addressS).toFixed(0)} ns by one`,
);
console.log(
  "ranks |    start  spawned  joined  ordered  groups   times 8 ranks'  log N's |     step  messages  statistics  messages  head busy  least step for 1 %  heartbeats",
);
const simulated = [8, 16, 32, 64, 128, 256, 512, 1024].map((numRanks) => {
  const stages = Math.min(MOST_STAGES, numRanks / RANKS_PER_HOST);
  const ofModel = RANKS_PER_HOST * stages;
  const replicas = numRanks / ofModel;
  const hops = [ofModel, replicas].flatMap((size) => [rowLength(size), size / rowLength(size)]);
  // Gradients go to all replicas; activations to the stage before and the one behind.
  const numPeers = sum(hops.slice(0, 2).map((size) => size - 1)) + replicas - 1 + Math.min(2, stages - 1);
  const groups = groupsAt({ tp: RANKS_PER_HOST, pp: stages, dp: replicas }, RANKS_PER_HOST);
  const shape = { numRanks, ranksPerHost: RANKS_PER_HOST, fanOut: FAN_OUT, hops, numPeers, groups };
  return { numRanks, ...simulateControl(shape, costs) };
});
const least = simulated[0]?.startS ?? Number.NaN;
for (const { numRanks, ...control } of simulated) {
  const ms = (seconds: number) => `${(1e3 * seconds).toFixed(seconds < 0.1 ? 2 : 0)} ms`;
  const cells = [
    [String(numRanks), 5],
    ["|", 1],
    [`${control.startS.toFixed(2)} s`, 8],
    [`${control.spawnedS.toFixed(2)}`, 6],
    [`${control.joinedS.toFixed(2)}`, 7],
    [`${control.orderedS.toFixed(2)}`, 8],
    [`${control.rendezvousS.toFixed(2)} s`, 8],
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
