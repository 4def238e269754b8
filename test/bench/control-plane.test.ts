import { describe, expect, it } from "vitest";
import { simulateControl } from "../../bench/scale/control-plane.ts";

const costs = {
  sendS: 10e-6,
  receiveS: 10e-6,
  partS: 0.5e-6,
  refS: 0.5e-6,
  orderS: 6e-6,
  spawnS: 500e-6,
  beatS: 8e-6,
  connectS: 50e-6,
  storeStartS: 2e-3,
  storeNameS: 0.5e-6,
  openS: 60e-6,
  storeS: 20e-6,
  addressS: 1e-6,
  bootS: 1,
  actorS: 0.1,
  latencyS: 50e-6,
};
const hosts = { ranksPerHost: 8, fanOut: 16, groups: [] };

/** Groups of `size` neighbouring ranks, for one thread of each rank: each in the store of its own host, or all in one. */
function meetingOf(numRanks: number, size: number, isApart: boolean) {
  const groups = Array.from({ length: numRanks / size }, (_, index) => ({ size, host: isApart ? index : 0 }));
  return Array.from({ length: numRanks }, (_, rank) => [
    groups[Math.floor(rank / size)] as (typeof groups)[0],
  ]);
}

describe("control of many ranks in virtual time", () => {
  it("is four messages a rank and step on one host, one after the other on the head's event loop", () => {
    const one = { numRanks: 8, ranksPerHost: 8, fanOut: 16, hops: [8], numPeers: 7, groups: [] };
    const { stepMessages, headBusyS, stepS, heartbeatShare } = simulateControl(one, costs);
    expect(stepMessages).toBe(4 * 8);
    expect(headBusyS).toBeCloseTo(4 * 8 * 10e-6, 9);
    // An order's last send, its way and its answer's, twice: what the head does not do meanwhile.
    expect(stepS).toBeGreaterThan(headBusyS - 1e-9);
    expect(stepS).toBeLessThan(headBusyS + 2 * (2 * 50e-6 + 3 * 10e-6) + 1e-9);
    expect(heartbeatShare).toBeCloseTo((8 * 8e-6) / 0.2, 9);
  });

  it("goes along a tree of hosts: the head sends as many messages as it has hosts below it, and each host its own", () => {
    const { stepMessages, headBusyS } = simulateControl(
      { ...hosts, numRanks: 1024, hops: [8, 8, 16], numPeers: 29 },
      costs,
    );
    // Down and up, of two orders: to each rank by its host, to each of 128 hosts by the head or another host.
    expect(stepMessages).toBe(2 * 2 * (1024 + 128));
    expect(headBusyS).toBeCloseTo(2 * 16 * 2 * 10e-6 + 2 * (1024 - 16) * 0.5e-6, 9);
  });

  it("passes the agent of a rank's host on its way between the head and that rank, but for the head's own host", () => {
    const stepOf = (sendS: number) =>
      simulateControl(
        { numRanks: 2, ranksPerHost: 1, fanOut: 16, hops: [2], numPeers: 1, groups: [] },
        { ...costs, sendS, receiveS: 0, partS: 0, latencyS: 0 },
      ).stepS;
    // Two orders: the head sends each to both ranks, the agent of the second relays it, the rank tells its shard, the shard
    // answers, and the agent relays the answer.
    expect(stepOf(1)).toBeCloseTo(2 * (2 + 1 + 1 + 1 + 1 + 1), 9);
  });

  it("exchanges statistics hop after hop: each rank with its row, then with its column", () => {
    const hopped = simulateControl({ ...hosts, numRanks: 128, hops: [8, 16], numPeers: 22 }, costs);
    const atOnce = simulateControl({ ...hosts, numRanks: 128, hops: [128], numPeers: 127 }, costs);
    expect(hopped.statisticsMessages).toBe(128 * (7 + 15));
    // All send at once, and then take in: each of a hop's others once, and the way of the first.
    expect(hopped.statisticsS).toBeCloseTo(2 * (7 + 15) * 10e-6 + 2 * 50e-6, 6);
    expect(atOnce.statisticsMessages).toBe(128 * 127);
    expect(atOnce.statisticsS).toBeCloseTo(2 * 127 * 10e-6 + 50e-6, 6);
    // Messages sent ahead of their turn are not mistaken for the awaited ones: no rank is left behind.
    const uneven = simulateControl({ ...hosts, numRanks: 12, hops: [3, 4], numPeers: 5 }, costs);
    expect(uneven.statisticsMessages).toBe(12 * (2 + 3));
  });

  it("of a step grows with the logarithm of the ranks, but for what their answers weigh", () => {
    const stepOf = (numRanks: number) =>
      simulateControl({ ...hosts, numRanks, hops: [8, numRanks / 8], numPeers: 7 }, { ...costs, partS: 0 })
        .stepS;
    const [few, many] = [stepOf(64), stepOf(1024)];
    expect(many / few).toBeGreaterThan(1);
    expect(many / few).toBeLessThan(Math.log(1024) / Math.log(64) + 1);
  });

  it("makes the start wait until the head has spawned and linked the ranks: each grows with the ranks, no more", () => {
    const startOf = (numRanks: number) =>
      simulateControl(
        { ...hosts, numRanks, hops: [8, numRanks / 8], numPeers: 7 },
        { ...costs, bootS: 0, actorS: 0, addressS: 0, refS: 0, partS: 0, storeNameS: 0 },
      );
    const [some, twice] = [startOf(512), startOf(1024)];
    for (const part of ["spawnedS", "joinedS"] as const) expect(twice[part] / some[part]).toBeLessThan(2.1);
    expect(twice.orderedS / some.orderedS).toBeLessThan(1.2);
    expect(startOf(512)).toEqual(some);
  });

  it("lets groups in stores of their own join in parallel, and groups in one store one after another", () => {
    const rendezvousS = (numRanks: number, isApart: boolean) =>
      simulateControl(
        { ...hosts, numRanks, hops: [8], numPeers: 7, groups: [meetingOf(numRanks, 8, isApart)] },
        costs,
      ).rendezvousS;
    expect(rendezvousS(1024, true)).toBeCloseTo(rendezvousS(8, true), 9);
    const [one, many] = [rendezvousS(8, false), rendezvousS(1024, false)];
    // The store is always busy: each member opens one connection and makes some ten requests.
    expect(many).toBeGreaterThan(1024 * (costs.openS + 9 * costs.storeS));
    expect(many).toBeLessThan(1024 * (costs.openS + 11 * costs.storeS) + one);
  });

  it("work that a thread does one after the other takes the sum of both times", () => {
    const shape = { ...hosts, numRanks: 64, hops: [8], numPeers: 7 };
    const [tensor, world] = [meetingOf(64, 8, true), meetingOf(64, 64, true)];
    const rendezvousS = (groups: (typeof tensor)[]) =>
      simulateControl({ ...shape, groups }, costs).rendezvousS;
    expect(rendezvousS([tensor, world])).toBeCloseTo(rendezvousS([tensor]) + rendezvousS([world]), 9);
    // A thread joins its second group by the connection of the first if both use one store.
    const both = tensor.map((groups, rank) => [...groups, ...(world[rank] ?? [])]);
    expect(rendezvousS([both])).toBeLessThan(rendezvousS([tensor, world]));
  });
});
