import { describe, expect, it } from "vitest";
import type { Launch } from "../../src/actors/launch/index.ts";
import { optionsOfCopy } from "../../src/actors/trainer/live/open-options.ts";
import { hostsOf, launchedOptions } from "../../src/actors/trainer/plan/launched.ts";

/** Three hosts with two processes each: those numbered 0, 2 and 4 start ranks. */
const launch: Launch = {
  ...{ by: "torchrun", rank: 0, size: 6, localRank: 0, localSize: 2, run: "1" },
  ...{ master: { host: "node-a", port: 29_500 }, isStoreKept: true, replacesLost: false },
};

describe("the hosts of a further model", () => {
  it("are all, the first ones for fewer ranks, or those that it names, in its order", () => {
    expect(hostsOf(launch, 8)).toEqual([0, 2, 4]);
    expect(hostsOf(launch, 1)).toEqual([0]);
    expect(hostsOf(launch, 2, [4, 0])).toEqual([4, 0]);
  });

  it.each([
    ["of others", 2, [1], "1 to 2 of the hosts 0, 2, 4, each once, got [1]"],
    ["of one named twice", 2, [2, 2], "1 to 2 of the hosts 0, 2, 4, each once, got [2, 2]"],
    ["of none", 2, [], "1 to 2 of the hosts 0, 2, 4, each once, got []"],
    ["of more than ranks", 1, [0, 2], "1 to 1 of the hosts 0, 2, 4, each once, got [0, 2]"],
  ])("are refused: a list %s", (_, ranks, hosts, words) => {
    expect(() => hostsOf(launch, ranks, hosts)).toThrow(`[options] expected hosts to be ${words}`);
  });

  it("are its model's for a copy, the first ones for fewer ranks, unless the copy names its own", () => {
    const model = { name: "judge", ranks: 2, hosts: [4, 0] };
    expect(optionsOfCopy(model, {})).toEqual(model);
    expect(optionsOfCopy(model, { ranks: 1 })).toEqual({ ...model, ranks: 1, hosts: [4] });
    expect(optionsOfCopy(model, { ranks: 1, hosts: [2] })).toEqual({ ...model, ranks: 1, hosts: [2] });
    expect(optionsOfCopy({ ranks: 2 }, { ranks: 1 }).hosts).toBeUndefined();
  });

  it("need one rank, where the first model's need one each", () => {
    const none = { ranks: 0 };
    expect(() => launchedOptions(none, launch, 1)).toThrow(
      "[options] expected ranks to be at least 1 in what torchrun",
    );
    expect(() => launchedOptions(none, launch)).toThrow(
      "[options] expected ranks to be at least 3 in what torchrun",
    );
  });
});
