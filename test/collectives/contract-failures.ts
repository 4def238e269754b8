import { describe, expect, it } from "vitest";
import type { Members } from "./members.ts";

/** The errors of every rank when one is wrong, late or gone. */
export function describeFailures(members: Members): void {
  describe("mistakes", () => {
    it.each([
      ["otherKind", "#1 broadcast(float32[4], root 0)"],
      ["otherShape", "#1 allReduce(float32[5], sum)"],
      ["otherDtype", "#1 allReduce(float64[4], sum)"],
      ["otherReduction", "#1 allReduce(float32[4], max)"],
    ] as const)(
      "%s on one rank is an error on all of them, naming what each called",
      async (scenario, call) => {
        const { outcomes } = members.start(["sumOfFour", scenario], 2);
        for (const outcome of await Promise.all(outcomes)) {
          expect(outcome).toMatchObject({
            code: "COLLECTIVE_MISMATCH",
            message: expect.stringContaining(`rank 0 #1 allReduce(float32[4], sum); rank 1 ${call}`),
          });
        }
      },
    );

    it.each(["sumOfFourThenRoot", "otherSplits", "otherPair", "sendsRagged"] as const)(
      "%s is an error on both ranks",
      async (scenario) => {
        for (const outcome of await members.run(scenario, 2))
          expect(outcome).toMatchObject({ code: "COLLECTIVE_MISMATCH" });
      },
    );

    it("names the place in the program where one rank left something out", async () => {
      const { outcomes } = members.start(["skipsNone", "skipsNone", "skipsOne"], 3);
      for (const outcome of await Promise.all(outcomes)) {
        expect(outcome).toMatchObject({
          code: "COLLECTIVE_MISMATCH",
          message: expect.stringContaining("rank 2 #2 allGather(float32[1])"),
        });
      }
    });

    it.each(["root", "self", "average", "indivisible", "dtypes", "splits", "aliased", "scalar", "operation"])(
      "refuses a wrong argument before it reaches anybody: %s",
      async (which) => {
        for (const outcome of await members.run("refused", 2, { argument: { which } }))
          expect(outcome).toMatchObject({ code: "COLLECTIVE_ARGUMENT" });
      },
    );
  });

  describe("ranks that do not come", () => {
    it("are named when the deadline has passed", async () => {
      const { outcomes } = members.start(["barrierThenSum", "barrierOnly"], 2, {
        deadlineMs: 300,
        argument: { untilMs: 3_000 },
      });
      expect(await outcomes[0]).toMatchObject({
        code: "COLLECTIVE_TIMEOUT",
        message: expect.stringMatching(/#2 allReduce\(float32\[4\], sum\).* 300 ms .*rank 1 did not come/),
      });
      await outcomes[1];
    });

    it("are known at once when they leave", async () => {
      const { outcomes } = members.start(["barrierThenSum", "leaves", "barrierThenSum"], 3);
      const [first, , last] = await Promise.all(outcomes);
      for (const outcome of [first, last]) expect(outcome).toMatchObject({ code: "COLLECTIVE_ABORTED" });
    });

    it("are known at once when their thread or process ends", async () => {
      const { outcomes } = members.start(["barrierThenSum", "exits"], 2);
      expect(await outcomes[0]).toMatchObject({
        code: "COLLECTIVE_ABORTED",
        message: expect.stringContaining("rank 1"),
      });
      expect(await outcomes[1]).toMatchObject({ code: "ENDED" });
    });

    it("give everyone the reason when they abort", async () => {
      const { outcomes } = members.start(["barrierThenSum", "aborts", "barrierThenSum"], 3);
      const [first, , last] = await Promise.all(outcomes);
      for (const outcome of [first, last]) expect(outcome).toMatchObject({ code: "COLLECTIVE_ABORTED" });
    });
  });
}
