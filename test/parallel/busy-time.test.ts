import { describe, expect, it } from "vitest";
import { BusyTime } from "../../src/compute/parallel/index.ts";

describe("BusyTime", () => {
  it("counts time that several activities share once, and gaps not at all", () => {
    const busy = new BusyTime();
    busy.add(0, 10);
    busy.add(2, 5);
    busy.add(8, 14);
    busy.add(20, 21);
    expect(busy.totalMs).toBe(15);
  });
});
