import { afterAll, describe, expect, it } from "vitest";
import { describeCollectives } from "./contract.ts";
import { Members } from "./members.ts";

describeCollectives({ backend: "local", placement: "thread" });

describe("a group of threads", () => {
  const members = new Members({ backend: "local", placement: "thread" });
  afterAll(() => members.stop());

  it("refuses tensors on the host beside those on a device, which it would read as its own memory", async () => {
    const { outcomes } = members.start(["sumOfFour", "otherDevice"], 2);
    for (const outcome of await Promise.all(outcomes))
      expect(outcome).toMatchObject({
        code: "COLLECTIVE_MISMATCH",
        message: expect.stringMatching(
          /expected tensors of one kind of device, got .*(cpu|sim).* of rank [01] and /,
        ),
      });
  });
});
