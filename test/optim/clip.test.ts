import { describe, expect, it } from "vitest";
import { clipFactor } from "../../src/compute/optim/index.ts";

describe("clipFactor", () => {
  it("is torch's: max norm over norm + 1e-6, at most 1", () => {
    expect(clipFactor(4, 1)).toBe(1 / (4 + 1e-6));
    expect(clipFactor(0.5, 1)).toBe(1);
    expect(clipFactor(1e30, Number.POSITIVE_INFINITY)).toBe(1);
  });
});
