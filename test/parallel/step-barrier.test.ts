import { describe, expect, it } from "vitest";
import { StepBarrier } from "../../src/parallel/index.ts";

describe("StepBarrier", () => {
  it("answers who waited once the counter is there, and not before", async () => {
    const milestones = new StepBarrier();
    let passed = false;
    const waiting = milestones.until(3, 12).then(() => {
      passed = true;
    });
    milestones.reach(3, 11);
    milestones.reach(4, 12);
    await Promise.resolve();
    expect(passed).toBe(false);
    milestones.reach(3, 12);
    await waiting;
    expect(passed).toBe(true);
  });

  it("answers at once for what has been passed", async () => {
    const milestones = new StepBarrier();
    milestones.reach(0, 5);
    await milestones.until(0, 4);
    expect(milestones.has(0, 5)).toBe(true);
    expect(milestones.has(0, 6)).toBe(false);
    expect(milestones.has(1, 0)).toBe(false);
  });

  it("lets nobody wait for ever once it is aborted", async () => {
    const milestones = new StepBarrier();
    const early = milestones.until(0, 1);
    milestones.abort(new Error("a rank is gone"));
    await expect(early).rejects.toThrow("a rank is gone");
    await expect(milestones.until(7, 7)).rejects.toThrow("a rank is gone");
  });
});
