import { describe, expect, it } from "vitest";
import { StepBarrier } from "../../src/compute/parallel/index.ts";

describe("StepBarrier", () => {
  it("answers who waited once the counter is there, and not before", async () => {
    const barrier = new StepBarrier();
    let passed = false;
    const waiting = barrier.until(3, 12).then(() => {
      passed = true;
    });
    barrier.reach(3, 11);
    barrier.reach(4, 12);
    await Promise.resolve();
    expect(passed).toBe(false);
    barrier.reach(3, 12);
    await waiting;
    expect(passed).toBe(true);
  });

  it("answers at once for what has been passed", async () => {
    const barrier = new StepBarrier();
    barrier.reach(0, 5);
    await barrier.until(0, 4);
    expect(barrier.has(0, 5)).toBe(true);
    expect(barrier.has(0, 6)).toBe(false);
    expect(barrier.has(1, 0)).toBe(false);
  });

  it("lets nobody wait for ever once it is aborted", async () => {
    const barrier = new StepBarrier();
    const early = barrier.until(0, 1);
    barrier.abort(new Error("a rank is gone"));
    await expect(early).rejects.toThrow("a rank is gone");
    await expect(barrier.until(7, 7)).rejects.toThrow("a rank is gone");
  });
});
