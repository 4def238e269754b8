import { afterEach, describe, expect, it } from "vitest";
import { copyOffThread, hold } from "../../src/compute/tensor/index.ts";
import { arange, zeros } from "../../src/entries/index.ts";
import { liveTensors, memory } from "../../src/entries/tensor.ts";

const numel = 100_003;

/** Distinct values, and room for them. */
function pair() {
  return [hold(() => arange(numel, { dtype: "float32" })), hold(() => zeros([numel]))] as const;
}

afterEach(() => expect(liveTensors()).toBe(0));

describe("a copy off-thread", () => {
  it("brings the elements asked for to their places and leaves the others, in whatever stretches", async () => {
    const [from, into] = pair();
    await Promise.all([
      copyOffThread(from, into, 10, 5_000),
      copyOffThread(from, into, 5_010, numel - 5_010),
    ]);
    const expected = hold(() => from.clone());
    expected.narrow(0, 0, 10).zero_().dispose();
    expect(into.equal(expected)).toBe(true);
    for (const tensor of [from, into, expected]) tensor.dispose();
  });

  it("keeps both memories for as long as it needs them, and no longer", async () => {
    const before = memory().totalBytes;
    const [from, into] = pair();
    const copied = copyOffThread(from, into, 0, numel);
    from.dispose();
    into.dispose();
    await copied;
    expect(memory().totalBytes).toBe(before);
  });

  it("refuses what is not a stretch of two alike tensors", () => {
    const [from, into] = pair();
    const short = hold(() => zeros([3]));
    const wide = hold(() => zeros([numel], { dtype: "float64" }));
    const strided = hold(() => zeros([numel, 2]).select(1, 0));
    const refused = expect.objectContaining({ code: "TENSOR_ARGUMENT" });
    for (const other of [short, wide, strided]) {
      expect(() => copyOffThread(from, other, 0, 1)).toThrow(refused);
    }
    for (const [begin, count] of [
      [-1, 2],
      [0, numel + 1],
      [numel, 1],
    ] as const) {
      expect(() => copyOffThread(from, into, begin, count)).toThrow(refused);
    }
    for (const tensor of [from, into, short, wide, strided]) tensor.dispose();
  });
});
