import { describe, expect, it } from "vitest";
import { Rewinds } from "../../../src/actors/trainer/recovery/recovery.ts";
import { TroupeError } from "../../../src/errors/index.ts";
import { RewindRequest } from "../../../src/job/anomalies/index.ts";

const request = (step: number) =>
  new RewindRequest(step, new TroupeError("LOSS_SPIKE", { relayed: `[step ${step}] odd` }));

describe("how far a run goes back", () => {
  it("is to the newest state that has not seen the step that went wrong", () => {
    const rewinds = new Rewinds();
    expect(rewinds.latestStep(request(18))).toBe(18);
    rewinds.note(18, 16);
    expect(rewinds.latestStep(request(40))).toBe(40);
  });

  it("is behind that state where it goes wrong again before the run has got any further", () => {
    const rewinds = new Rewinds();
    rewinds.latestStep(request(18));
    rewinds.note(18, 16);
    expect(rewinds.latestStep(request(17))).toBe(15);
    rewinds.note(17, 12);
    expect(rewinds.latestStep(request(18))).toBe(11);
  });

  it("is no way at all after three times in a row", () => {
    const rewinds = new Rewinds();
    for (const to of [16, 12, 0]) {
      rewinds.latestStep(request(18));
      rewinds.note(18, to);
    }
    expect(() => rewinds.latestStep(request(18))).toThrow("[step 18] odd");
    const others = new Rewinds();
    for (const from of [10, 20, 30, 40, 50]) {
      expect(others.latestStep(request(from))).toBe(from);
      others.note(from, from - 2);
    }
  });
});
