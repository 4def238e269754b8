import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { textWindows, type WindowOptions } from "../../src/library/data/text/text-windows.ts";

const text = { source: "text.txt", numTokens: 10_000 };
const orders = ["random", "epoch"] as const;

describe("the split", () => {
  test("trains on the first nine tenths and holds out the last", () => {
    const windows = textWindows(text, { length: 64, seed: 1 });
    expect(windows.train).toEqual({ begin: 0, end: 9000 });
    expect(windows.validation).toEqual({ begin: 9000, end: 10_000 });
    expect([windows.numTrainWindows, windows.numValidationWindows]).toEqual([140, 15]);
  });

  test("holds nothing out where the fraction is 0", () => {
    const windows = textWindows(text, { length: 9999, seed: 1, validationFraction: 0 });
    expect(windows.batchStarts(0, 2)).toEqual([0, 0]);
    expect(windows.validationStarts()).toEqual([]);
  });
});

describe.each(orders)("the order %j", (order) => {
  test("gives the same windows for a position however the samples are grouped", () => {
    const windows = textWindows(text, { length: 64, seed: 1337, order });
    const whole = windows.batchStarts(1000, 24);
    const twoRanks = [windows.batchStarts(1000, 12), windows.batchStarts(1012, 12)].flat();
    const single = Array.from({ length: 24 }, (_, index) => windows.batchStarts(1000 + index, 1)).flat();
    expect(twoRanks).toEqual(whole);
    expect(single).toEqual(whole);
    const again = textWindows(text, { length: 64, seed: 1337, order });
    expect(again.batchStarts(1000, 24)).toEqual(whole);
  });

  test("never reads a token outside the training part", () => {
    const options = fc.record({
      numTokens: fc.integer({ min: 20, max: 5000 }),
      length: fc.integer({ min: 1, max: 15 }),
      seed: fc.maxSafeInteger(),
      position: fc.nat(1e9),
    });
    fc.assert(
      fc.property(options, ({ numTokens, length, seed, position }) => {
        const windows = textWindows(
          { source: "text.txt", numTokens },
          { length, seed, order, validationFraction: 0.2 * Number(numTokens > 200) },
        );
        for (const start of windows.batchStarts(position, 5)) {
          expect(start).toBeGreaterThanOrEqual(windows.train.begin);
          expect(start + length + 1).toBeLessThanOrEqual(windows.train.end);
        }
      }),
    );
  });
});

describe("random windows", () => {
  test("begin anywhere, evenly", () => {
    const windows = textWindows(
      { source: "text.txt", numTokens: 74 },
      { length: 64, seed: 3, validationFraction: 0 },
    );
    const counts = new Array<number>(10).fill(0);
    for (const start of windows.batchStarts(0, 10_000)) counts[start] = (counts[start] ?? 0) + 1;
    // 1,000 expected for each of ten starts; five standard deviations are 150.
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  test("differ between seeds", () => {
    const starts = (seed: number) => textWindows(text, { length: 64, seed }).batchStarts(0, 8);
    expect(starts(1)).not.toEqual(starts(2));
  });
});

describe("windows by epoch", () => {
  const windows = textWindows(text, { length: 64, seed: 5, order: "epoch" });
  const epoch = (index: number) =>
    windows.batchStarts(index * windows.numTrainWindows, windows.numTrainWindows);

  test("come each exactly once per epoch", () => {
    const sideBySide = Array.from({ length: 140 }, (_, index) => 64 * index);
    expect(epoch(0).toSorted((a, b) => a - b)).toEqual(sideBySide);
    expect(epoch(41).toSorted((a, b) => a - b)).toEqual(sideBySide);
  });

  test("come in another order in the next epoch", () => {
    expect(epoch(0)).not.toEqual(epoch(1));
  });
});

describe("held-out windows", () => {
  const windows = textWindows(text, { length: 64, seed: 5 });

  test("lie side by side and are always the same", () => {
    expect(windows.validationStarts()).toEqual(Array.from({ length: 15 }, (_, index) => 9000 + 64 * index));
    expect(windows.validationStarts(100)).toEqual(windows.validationStarts());
  });

  test("spread over the held-out part when fewer are asked for", () => {
    expect(windows.validationStarts(3)).toEqual([9000, 9000 + 64 * 5, 9000 + 64 * 10]);
    expect(windows.validationStarts(0)).toEqual([]);
  });
});

describe("refuses", () => {
  const refusal = (numTokens: number, options: Partial<WindowOptions>) => {
    try {
      textWindows({ source: "text.txt", numTokens }, { length: 64, seed: 1, ...options });
    } catch (error) {
      return [(error as { code: string }).code, String(error)] as const;
    }
    throw new Error("expected a refusal");
  };

  test("a text with less than one window, naming what would do", () => {
    const [code, message] = refusal(64, {});
    expect(code).toBe("DATA_TOO_SHORT");
    expect(message).toContain("expected at least 65 tokens in the training part of text.txt, got 57");
  });

  test("a held-out part with less than one window", () => {
    const [code, message] = refusal(600, {});
    expect(code).toBe("DATA_TOO_SHORT");
    expect(message).toContain("held-out part");
  });

  test.each([
    { length: 0 },
    { length: 1.5 },
    { seed: Number.NaN },
    { validationFraction: 1 },
    { validationFraction: -0.1 },
    { order: "sorted" as never },
  ])("the option %j", (options) => {
    expect(refusal(10_000, options)[0]).toBe("DATA_OPTION");
  });
});
