import { describe, expect, it } from "vitest";
import { hostTree } from "../../src/actors/engine/relay/host-tree.ts";
import type { HostNode } from "../../src/actors/protocols/index.ts";

const ranksBelow = ({ ranks, below }: HostNode): number[] => [...ranks, ...below.flatMap(ranksBelow)];
const heightOf = ({ below }: HostNode): number => 1 + Math.max(0, ...below.map(heightOf));

describe("the hosts of a run as a tree", () => {
  it("each hear from one other, which tells at most 16: 1,024 ranks of 128 hosts by two ways at most", () => {
    const hosts = Array.from({ length: 1_024 }, (_, rank) => Math.floor(rank / 8));
    const tree = hostTree(hosts);
    expect(tree).toHaveLength(16);
    expect(tree.flatMap(ranksBelow).sort((a, b) => a - b)).toEqual([...hosts.keys()]);
    expect(Math.max(...tree.map(heightOf))).toBe(2);
    expect(Math.max(...tree.map(({ below }) => below.length))).toBe(16);
  });

  it("keep the ranks that live on one, wherever these stand in the world", () => {
    expect(hostTree([0, 2, 0, 2], 1)).toEqual([{ ranks: [0, 2], below: [{ ranks: [1, 3], below: [] }] }]);
  });

  it("a tree has no relays if all ranks are on one host: each rank receives orders directly", () => {
    expect(hostTree([0, 0, 0])).toEqual([]);
    expect(hostTree([])).toEqual([]);
  });
});
