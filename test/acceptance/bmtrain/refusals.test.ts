// What BMTrain lets pass, and trains wrong or waits for: here it is refused, with a word on what to do.
import { describe, expect, it } from "vitest";
import { parseZeroLevel } from "../../../src/compute/parallel/index.ts";
import { Runtime, type RuntimeOptions } from "../../../src/entries/index.ts";

const odd = new URL("../../fixtures/acceptance/odd.ts", import.meta.url);

async function run(options: RuntimeOptions, config: Readonly<Record<string, unknown>>): Promise<number[]> {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, ...options });
  const losses: number[] = [];
  runtime.on("step.finished", ({ lossNats }) => losses.push(lossNats));
  await runtime.run(odd, config);
  return losses;
}

describe("a rank whose model is another one", () => {
  it.each(["fewer blocks", "parameters", "frozen", "level"])(
    "is named before the first step, not waited for: %s",
    async (how) => {
      await expect(run({ ranks: 2, zero: 3 }, { odd: how })).rejects.toMatchObject({
        code: "RANKS_DIFFER",
      });
    },
  );
});

// Appendix A 4.
describe("a module", () => {
  it.each(["written to", "replaced"])(
    "whose own tensor is %s in a step is refused in the first one",
    async (holds) => {
      await expect(run({}, { holds })).rejects.toMatchObject({
        code: "MODULE_STATE",
        message: expect.stringContaining("[layers.1] expected mean, a tensor that the module holds, to stay"),
      });
    },
  );

  it("with a parameter of other floats than float32 is refused, as the run says what is computed in", async () => {
    await expect(run({}, { holds: "float64" })).rejects.toMatchObject({ code: "PARAMETER_DTYPE" });
  });
});

// Appendix A 2, where the layers of one list lie on several stages.
describe("a layer that stands in the list twice", () => {
  it("is held by each stage of a pipeline that calls it, and trained as by one rank", async () => {
    const shared = { holds: "one layer twice" };
    const one = await run({ ranks: 1, accumulation: 2 }, shared);
    const two = await run({ ranks: 2, pp: 2, accumulation: 2 }, shared);
    expect(two.length).toBe(one.length);
    // The gradients of its two calls are added after their micro-batches' sums, not before.
    for (const [step, loss] of one.entries()) expect(Math.abs((two[step] ?? 0) - loss)).toBeLessThan(1e-5);
  });
});

describe("the names of other libraries for ZeRO levels", () => {
  it("mean the levels: oss 1, sdp 2, fsdp 3; another is refused", async () => {
    expect(["oss", "sdp", "fsdp"].map(parseZeroLevel)).toEqual([1, 2, 3]);
    await expect(Runtime.spawn({ zero: "ddp" as "oss" })).rejects.toMatchObject({ code: "OPTION" });
  });
});
