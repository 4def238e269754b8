import { afterEach, describe, expect, it } from "vitest";
import {
  empty,
  memory,
  ops,
  releaseCachedMemory,
  scope,
  type Tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { expectSame, normal } from "../kernels/inputs.ts";
import { refusal } from "./numbers.ts";

const MiB = 2 ** 20;
const bytes = (sizeBytes: number) => empty([sizeBytes], { dtype: "uint8" });

afterEach(releaseCachedMemory);

/** A small generator of its own, so that a trace is the same every time. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe("the caching allocator", () => {
  it("keeps freed memory for the next tensor and gives it back when asked to", () => {
    const before = memory().residentBytes;
    scope(() => void zeros([64 * MiB], { dtype: "uint8" }));
    expect(memory().residentBytes - before).toBeGreaterThanOrEqual(64 * MiB);
    const held = memory().residentBytes;
    scope(() => void zeros([64 * MiB], { dtype: "uint8" }));
    expect(memory().residentBytes).toBe(held);
    releaseCachedMemory();
    expect(memory().residentBytes).toBeLessThanOrEqual(before + 2 * MiB);
  });

  it("holds at most an eighth, or 64 MiB, more than was ever in use at once", () => {
    const random = pseudoRandom(1);
    const live: Tensor[] = [];
    let liveBytes = 0;
    let peakBytes = 0;
    const before = memory().residentBytes;
    for (let i = 0; i < 3000; i++) {
      if (live.length > 40 || (live.length > 0 && random(2) === 0)) {
        const [gone] = live.splice(random(live.length), 1) as [Tensor];
        liveBytes -= gone.numel;
        gone.dispose();
      } else {
        const sizeBytes = 1 + random(2 ** (10 + random(14)));
        live.push(bytes(sizeBytes));
        liveBytes += sizeBytes;
      }
      peakBytes = Math.max(peakBytes, liveBytes);
    }
    expect(memory().residentBytes - before).toBeLessThanOrEqual(
      peakBytes + Math.max(64 * MiB, peakBytes / 8) + 8 * MiB,
    );
    for (const t of live) t.dispose();
  });

  it("never gives two tensors the same bytes", () => {
    const random = pseudoRandom(2);
    const live: { tensor: Tensor; value: number }[] = [];
    for (let i = 0; i < 2000; i++) {
      const value = i % 251;
      live.push({ tensor: bytes(random(2 ** random(17))).fill_(value), value });
      if (live.length < 100) continue;
      const [{ tensor: gone, value: expected }] = live.splice(random(live.length), 1) as [
        (typeof live)[number],
      ];
      expect(ops.troupe.allFinite([gone.ne(expected).sum().to("float32")])).toBeTruthy();
      expect(gone.numel === 0 || gone.eq(expected).all().item()).toBeTruthy();
      gone.dispose();
    }
    for (const { tensor } of live) tensor.dispose();
  });

  it("aligns data to the cache line at every size", () => {
    // An unaligned block would show as a crash of aligned vector instructions; a product reaches them.
    for (const size of [1, 3, 17, 65, 129, 1023]) {
      const a = normal([size, 4], 1);
      expectSame(a.mul(1), a);
    }
  });

  it("refuses what the machine cannot hold, with the bytes asked for, in use and held", () => {
    const message = refusal(() => bytes(2 ** 50))?.message;
    expect(message).toMatch(
      /expected memory for 1125899906842624 bytes, got \d+ bytes in use, \d+ held, \d+ available/,
    );
  });
});
