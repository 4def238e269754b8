import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { StoredValues } from "../../src/actors/state/initial/stored-values.ts";
import { PartCollection } from "../../src/actors/state/saving/part-collection.ts";
import { writeParts } from "../../src/actors/state/saving/write-parts.ts";
import { LocalFolder } from "../../src/entries/checkpoint.ts";
import { CHUNK_BYTES } from "../../src/library/checkpoint/index.ts";
import { fewParameters, type SplitParameter, type Spread, SpreadState } from "../fixtures/spread-state.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const progress = { numUpdates: 3 };
const state = { step: 3, seed: 1, samplesConsumed: 12, job: null, tokenizer: null };

/** Saves numbered state as the ranks of a layout send it, in the order of `shuffle`. */
async function save(
  name: string,
  parameters: readonly SplitParameter[],
  spread: Spread,
  shuffle = () => 0,
): Promise<string> {
  using saved = new SpreadState(parameters, spread).number();
  using collection = new PartCollection(0, 3);
  const order = { ...saved.plan, generation: 0, texts: { config: {} }, state, write: true, keep: false };
  const storage = new LocalFolder(join(folder, name));
  const writing = writeParts({ storage, keep: undefined, report: () => {} }, order, collection);
  for (const part of saved.parts(0, 3).toSorted(shuffle)) {
    await new Promise(setImmediate);
    collection.add(part);
  }
  collection.setProgress(progress);
  return (await writing).path;
}

/** Fills the state of another layout from a checkpoint. @returns whether all of it is right, and the bytes read */
async function load(path: string, parameters: readonly SplitParameter[], spread: Spread) {
  using loaded = new SpreadState(parameters, spread);
  let readBytes = 0;
  expect(loaded.isNumbered).toBe(false);
  for (const { state } of loaded.states) {
    await using values = await StoredValues.open({ kind: "checkpoint", step: 3, path, progress });
    await values.fill(state);
    readBytes = Math.max(readBytes, values.readBytes);
  }
  return { isRight: loaded.isNumbered, readBytes };
}

const spreads = fc.record({
  tp: fc.constantFrom(1, 2, 3, 4),
  dp: fc.constantFrom(1, 2, 3),
  zero: fc.constantFrom<(0 | 1 | 2 | 3)[]>(0, 1, 2, 3),
});

describe("a checkpoint of any layout", () => {
  it("a checkpoint fills every other layout to the bit, in any order of its parts", async () => {
    let count = 0;
    const layouts = fc.tuple(spreads, fc.array(spreads, { minLength: 3, maxLength: 3 }), fc.nat());
    await fc.assert(
      fc.asyncProperty(layouts, async ([from, others, salt]) => {
        let draws = salt;
        const shuffle = () => {
          draws = (draws * 48271 + 1) % 2147483647;
          return (draws % 3) - 1;
        };
        const path = await save(`any-${count++}`, fewParameters, from, shuffle);
        for (const to of others) expect((await load(path, fewParameters, to)).isRight).toBe(true);
      }),
      { seed: 3, numRuns: 12 },
    );
  });

  it("has the same bytes as that of every other", async () => {
    const bytesOf = async (path: string) =>
      Promise.all(["model", "optimizer"].map((name) => readFile(join(path, `${name}.safetensors`))));
    const plain = await bytesOf(await save("plain", fewParameters, { tp: 1, dp: 1, zero: 0 }));
    for (const spread of [
      { tp: 1, dp: 3, zero: 3 },
      { tp: 4, dp: 1, zero: 1 },
      { tp: 2, dp: 2, zero: 2 },
    ] as const) {
      const other = await bytesOf(await save(`as-${spread.tp}-${spread.dp}`, fewParameters, spread));
      expect(other.map((bytes, file) => bytes.equals(plain[file] as Buffer))).toEqual([true, true]);
    }
  });

  it("each rank reads the parts of a checkpoint that it owns, up to the ends of their chunks", async () => {
    // Small ones lie in the same chunks as their neighbours, which must not be read again for each.
    const small = Array.from({ length: 8 }, (_, index) => ({ name: `norm.${index}`, shape: [2048], dim: 0 }));
    const large = [...small, { name: "weight", shape: [3064, 2048], dim: 0 }];
    const stateBytes = 12 * 3072 * 2048;
    const path = await save("large", large, { tp: 1, dp: 1, zero: 0 });
    for (const [spread, share] of [
      [{ tp: 1, dp: 2, zero: 3 }, 1 / 2],
      [{ tp: 2, dp: 1, zero: 0 }, 1 / 2],
      [{ tp: 1, dp: 1, zero: 3 }, 1],
    ] as const) {
      const { isRight, readBytes } = await load(path, large, spread);
      expect(isRight).toBe(true);
      // For each of three kinds, chunks at two ends are read completely, or were cached from another read.
      expect(Math.abs(readBytes - share * stateBytes)).toBeLessThanOrEqual(3 * 2 * CHUNK_BYTES);
    }
  });
});
