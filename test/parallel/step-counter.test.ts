import { describe, expect, it } from "vitest";
import { StepCounter } from "../../src/compute/parallel/index.ts";

describe("StepCounter", () => {
  it("ends a wait once the counter is there, and not before", async () => {
    const counter = new StepCounter();
    let passed = false;
    const waiting = counter.until(12).then(() => {
      passed = true;
    });
    counter.reach(11);
    await Promise.resolve();
    expect(passed).toBe(false);
    counter.reach(12);
    await waiting;
    expect(passed).toBe(true);
  });

  it("ends a wait at once for what has been passed", async () => {
    const counter = new StepCounter();
    expect(counter.has(0)).toBe(false);
    counter.reach(5);
    await counter.until(4);
    expect(counter.has(5)).toBe(true);
    expect(counter.has(6)).toBe(false);
  });

  it("ends waits beyond its last value without reaching it", async () => {
    const counter = new StepCounter();
    const early = counter.until(7);
    counter.endAt(6);
    await early;
    await counter.until(8);
    expect(counter.has(7)).toBe(false);
  });

  it("ends every wait with an error once it is aborted", async () => {
    const counter = new StepCounter();
    const early = counter.until(1);
    counter.abort(new Error("a rank is gone"));
    await expect(early).rejects.toThrow("a rank is gone");
    await expect(counter.until(7)).rejects.toThrow("a rank is gone");
  });
});
