import { describe, expect, it } from "vitest";
import { simulateControl } from "../../src/planner/index.ts";

const costs = { sendS: 10e-6, receiveS: 10e-6, connectS: 200e-6, storeS: 20e-6, latencyS: 50e-6 };

describe("control of many ranks in virtual time", () => {
  it("is four messages a rank and step, one after the other on the head's event loop", () => {
    for (const numRanks of [8, 64, 1024]) {
      const { stepMessages, headBusyS, stepS, heartbeatShare } = simulateControl({ numRanks }, costs);
      expect(stepMessages).toBe(4 * numRanks);
      expect(headBusyS).toBeCloseTo(4 * numRanks * 10e-6, 9);
      // An order's last send, its way and its answer's, twice: what the head does not do meanwhile.
      expect(stepS).toBeGreaterThan(headBusyS - 1e-9);
      expect(stepS).toBeLessThan(headBusyS + 2 * (2 * 50e-6 + 3 * 10e-6) + 1e-9);
      expect(heartbeatShare).toBeCloseTo((2 * numRanks * 10e-6) / 0.2, 9);
    }
  });

  it("grows with the logarithm of the ranks where each one orders a few others", () => {
    const stepOf = (numRanks: number) => simulateControl({ numRanks, fanOut: 8 }, costs).stepS;
    const [few, many] = [stepOf(8), stepOf(8 + 64 + 512)];
    expect(many / few).toBeLessThan(3.5);
    expect(many / few).toBeGreaterThan(2);
  });

  it("meets in a store that answers each rank for each of its peers, which bounds the start", () => {
    const mesh = simulateControl({ numRanks: 256 }, costs);
    expect(mesh.meetingS).toBeGreaterThan(256 * 255 * 20e-6);
    const oneAHost = simulateControl({ numRanks: 256, numPeers: 31 }, costs);
    expect(oneAHost.meetingS).toBeLessThan(mesh.meetingS / 8);
    expect(oneAHost).toEqual(simulateControl({ numRanks: 256, numPeers: 31 }, costs));
  });
});
