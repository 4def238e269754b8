// Where BMTrain's ranks build different models they wait for each other for ever, or add up what does not belong together.
import { describe, expect, it } from "vitest";
import { Runtime } from "../../../src/index.ts";

const job = new URL("../../fixtures/acceptance/odd-rank.ts", import.meta.url);

describe("a rank whose model is another one", () => {
  it.each(["fewer blocks", "more blocks", "parameters", "frozen", "level"])(
    "is named before the first step, not waited for: %s",
    async (odd) => {
      await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, threadsPerRank: 1 });
      await expect(runtime.run(job, { odd })).rejects.toMatchObject({ code: "RANKS_DIFFER" });
    },
  );
});
