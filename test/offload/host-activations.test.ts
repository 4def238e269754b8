import { afterEach, describe, expect, it } from "vitest";
import { HostActivations } from "../../src/compute/offload/index.ts";
import {
  enterDevice,
  full,
  hold,
  liveTensors,
  noGrad,
  ops,
  scope,
  type Tensor,
} from "../../src/compute/tensor/index.ts";
import { pretend } from "../fixtures/devices/pretend.ts";

enterDevice("sim:0");
const numel = 1 << 15;
const seeds = Array.from({ length: 8 }, (_, index) => index + 1);

/** Late: a tensor and another of the same memory, as a block's input and its leaf. */
function activation(value: number): [Tensor, Tensor] {
  const tensor = hold(() => ops.mul(full([numel], 1), value));
  return [tensor, hold(() => tensor.detach())];
}

const lastOf = (tensor: Tensor) => scope(() => tensor.select(0, numel - 1).item());

afterEach(() => {
  pretend().simSynchronize();
  expect(liveTensors()).toBe(0);
});

describe("activations in the host's memory", () => {
  it("come back as they were, whatever uses their device's memory meanwhile, and are waited for by nobody", () => {
    for (const seed of seeds) {
      pretend().simSynchronize();
      pretend().simSeed(seed);
      const offloader = new HostActivations();
      const before = pretend().simStatistics();
      const kept = [1, 2, 3].map((value) => {
        const aliases = activation(value);
        const ticket = offloader.keep(aliases);
        if (ticket === undefined) throw new Error("its memory stays");
        expect(() => lastOf(aliases[0])).toThrow(/offloaded/);
        return { value, aliases, ticket };
      });
      // Takes the memory that was given up.
      const others = [-1, -2, -3].map((value) => hold(() => full([numel], value)));
      for (const { ticket } of kept.slice(1)) offloader.expect(ticket);
      for (const other of others) noGrad(() => scope(() => void other.mul_(2)));
      const doubled = kept.toReversed().map(({ aliases, ticket }) => {
        offloader.bring(ticket);
        return hold(() => ops.mul(aliases[1], 2));
      });
      const after = pretend().simStatistics();
      expect([after.readBacks, after.hostWaits]).toEqual([before.readBacks, before.hostWaits]);
      expect(doubled.map(lastOf)).toEqual([6, 4, 2]);
      expect(others.map(lastOf)).toEqual([-2, -4, -6]);
      for (const tensor of [...doubled, ...others, ...kept.flatMap(({ aliases }) => aliases)])
        tensor.dispose();
    }
  });

  it("stay where something else uses their memory, and where they are small", () => {
    const offloader = new HostActivations();
    const aliases = activation(1);
    const view = hold(() => aliases[0].narrow(0, 0, 4));
    expect(offloader.keep(aliases)).toBeUndefined();
    expect(lastOf(aliases[0])).toBe(1);
    const small = hold(() => full([16], 1));
    expect(offloader.keep([small])).toBeUndefined();
    for (const tensor of [...aliases, view, small]) tensor.dispose();
  });

  it("stay where they are transposed or expanded", () => {
    const offloader = new HostActivations();
    const transposed = hold(() => ops.mul(full([numel / 8, 8], 1), 2).t());
    const expanded = hold(() => ops.mul(full([1, 8], 1), 2).expand([numel / 8, 8]));
    for (const tensor of [transposed, expanded]) {
      expect(offloader.keep([tensor])).toBeUndefined();
      expect(scope(() => tensor.sum().item())).toBe(2 * numel);
      tensor.dispose();
    }
  });
});
