import { describe, expect, it } from "vitest";
import { memory, resetPeakMemory, scope, tagMemory, zeros } from "../../src/compute/tensor/index.ts";

const sizeBytes = 2 ** 20;
const make = () => zeros([sizeBytes], { dtype: "uint8" });

describe("the memory ledger", () => {
  it("counts what tensors hold, and no longer when they are gone", () => {
    const before = memory().totalBytes;
    const t = make();
    expect(memory().totalBytes - before).toBe(sizeBytes);
    t.dispose();
    expect(memory().totalBytes).toBe(before);
  });

  it("charges a tag with what is made under it, wherever it is released", () => {
    const t = tagMemory("memory-test/outer", () => {
      const inner = tagMemory("memory-test/inner", make);
      return [make(), make(), inner];
    });
    expect(memory().byTag).toMatchObject({
      "memory-test/outer": 2 * sizeBytes,
      "memory-test/inner": sizeBytes,
    });
    for (const it of t) it.dispose();
    expect(memory().byTag).toMatchObject({ "memory-test/outer": 0, "memory-test/inner": 0 });
  });

  it("goes back to the tag before when the body throws", () => {
    expect(() =>
      tagMemory("memory-test/thrown", () => {
        throw new Error("body");
      }),
    ).toThrow("body");
    const t = make();
    expect(memory().byTag["memory-test/thrown"]).toBe(0);
    t.dispose();
  });

  it("remembers the peak until it is reset", () => {
    resetPeakMemory();
    const base = memory().peakBytes;
    scope(() => [make(), make()].length);
    expect(memory().peakBytes - base).toBe(2 * sizeBytes);
    resetPeakMemory();
    expect(memory().peakBytes).toBe(memory().totalBytes);
  });
});
