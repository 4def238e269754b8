import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { nativeInfo } from "../../src/compute/tensor/index.ts";
import { Members, valuesOf } from "./members.ts";

describe.skipIf(!nativeInfo().gloo)("works that an event loop awaits", () => {
  const placements = ["thread", "process"] as const;
  const ofPlacement = placements.map((placement) => new Members({ backend: "gloo", placement }));
  afterAll(() => Promise.all(ofPlacement.map((members) => members.stop())));

  it.each(placements)("bring every rank what all others sent, on each %s", async (placement) => {
    const members = ofPlacement[placements.indexOf(placement)] as Members;
    const rounds = 50;
    const sums = valuesOf<number[]>(await members.run("awaitsAll", 3, { argument: { rounds } }));
    sums.forEach((ofRank, rank) => {
      const expected = Array.from({ length: rounds }, (_, round) => 1000 * (3 - rank + 2 * round));
      expect(ofRank).toEqual(expected);
    });
  });

  it.each([
    ["leaves", /rank 1/],
    ["aborts", /rank 1/],
  ] as const)("fail at once when the other rank %s, and let the loop go on before", async (other, who) => {
    const members = ofPlacement[1] as Members;
    const { outcomes } = members.start(["awaitsNothing", other], 2);
    expect(await outcomes[0]).toMatchObject({
      code: "COLLECTIVE_ABORTED",
      message: expect.stringMatching(who),
    });
    await outcomes[1];
  });

  it("are refused in a group of local threads, which carry work out while they wait", async () => {
    const local = new Members({ backend: "local", placement: "thread" });
    const outcomes = await local.run("awaitsAll", 2, { argument: { rounds: 1 } });
    await local.stop();
    for (const outcome of outcomes) expect(outcome).toMatchObject({ code: "COLLECTIVE_ARGUMENT" });
  });

  it("do not keep a program alive once they were refused", () => {
    const program = fileURLToPath(new URL("../fixtures/collectives/refused-await.ts", import.meta.url));
    const { stdout, status } = spawnSync(process.execPath, [program], { encoding: "utf8", timeout: 60_000 });
    expect({ stdout, status }).toEqual({ stdout: "COLLECTIVE_ARGUMENT\n", status: 0 });
  });
});
