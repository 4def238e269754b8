import { describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { apart, type Kind, kinds } from "./apart.ts";

const layouts: readonly (readonly [string, RuntimeOptions])[] = [
  ["one rank", { ranks: 1 }],
  ["replicas", { ranks: 2, zero: 0 }],
  ["ZeRO 3", { ranks: 2, zero: 3 }],
  ["tensor parallelism", { ranks: 2, tp: 2 }],
  ["tensor parallelism with split positions", { ranks: 2, tp: 2, sequenceParallel: true, overlapChunks: 2 }],
  ["pipeline stages", { ranks: 2, pp: 2 }],
  ["recomputed blocks", { ranks: 1, recompute: true }],
];

describe("an invariant generator and its trainer agree to the last bit", () => {
  it.each(layouts.flatMap(([name, layout]) => kinds.map((kind) => [...kind, name, layout] as const)))(
    "%s in %s: %s",
    async (family, precision, _, layout) => {
      expect(await apart({ ...layout, precision, invariant: true }, family)).toEqual([0, 0, 0, 0]);
    },
  );

  it.each(
    layouts.map(
      ([name, layout], index) => [(["fp32", "bf16"] as const)[index % 2] ?? "fp32", name, layout] as const,
    ),
  )("replies of T5 in %s: %s", async (precision, _, layout) => {
    expect(await apart({ ...layout, precision, invariant: true }, "t5")).toEqual([0, 0, 0, 0]);
  });

  // Each layout with two of the six, and each of these with some.
  it.each(
    layouts.flatMap(([name, layout], index) =>
      [index % 6, (index + 3) % 6].map((kind) => [...(kinds[kind] as Kind), name, layout] as const),
    ),
  )("%s in %s on the pretended device: %s", async (family, precision, _, layout) => {
    expect(await apart({ ...layout, precision, invariant: true, device: "sim" }, family)).toEqual([
      0, 0, 0, 0,
    ]);
  });

  it("which they do not otherwise", async () => {
    for (const device of ["cpu", "sim"])
      expect(Math.max(...(await apart({ ranks: 1, device }, "gpt2")))).toBeGreaterThan(0);
  });
});
