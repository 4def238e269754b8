import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { scope } from "../../../src/compute/tensor/index.ts";
import {
  IndexedWriter,
  type MegatronGptOptions,
  megatronGptDataset,
} from "../../../src/library/data/index.ts";
import { readNpy } from "../../../src/library/data/megatron/numpy/npy.ts";
import { numbers } from "../../tensor/numbers.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Documents of these lengths; a token says its document and its place. */
function write(name: string, lengths: readonly number[], first = 0): string {
  const prefix = join(folder, name);
  using writer = new IndexedWriter(prefix, "int32");
  for (const [d, length] of lengths.entries()) {
    writer.addSequence(Array.from({ length }, (_, t) => first + 100 * d + t));
    writer.endDocument();
  }
  writer.finish();
  return prefix;
}

function rowsOf(
  options: MegatronGptOptions,
  split: string,
  position: number,
  numSamples: number,
): number[][] {
  return scope(() => {
    const { inputIds, labels } = megatronGptDataset(options).batch(split, position, numSamples) as {
      inputIds: never;
      labels: never;
    };
    const [inputs, targets] = [numbers(inputIds), numbers(labels)];
    const { length } = options;
    return Array.from({ length: numSamples }, (_, row) => {
      const input = inputs.slice(row * length, (row + 1) * length);
      const target = targets.slice(row * length, (row + 1) * length);
      expect(target.slice(0, -1)).toEqual(input.slice(1));
      return [...input, target.at(-1) as number];
    });
  });
}

describe("Megatron's GPT data", () => {
  const dataPath = write("six", [5, 3, 7, 2, 9, 4]);
  const options = { dataPath, split: "1", length: 4, seed: 1234, numSamples: { train: 9 } };

  it("is its samples in its order, kept in its files, and read from them", () => {
    // Document order 2 1 5 0 4 3 …, sample order 1 0 3 …
    const first = [
      [204, 205, 206, 100, 101],
      [200, 201, 202, 203, 204],
      [502, 503, 0, 1, 2],
    ];
    expect(rowsOf(options, "train", 0, 3)).toEqual(first);
    const stem = `${dataPath}_train_indexmap_9ns_4sl_1234s`;
    expect(readNpy(`${stem}_doc_idx.npy`).data).toEqual(Int32Array.of(2, 1, 5, 0, 4, 3, 0, 4, 3, 2, 5, 1));
    expect(readNpy(`${stem}_sample_idx.npy`).shape).toEqual([15, 2]);
    expect(rowsOf(options, "train", 0, 3)).toEqual(first);
    // A damaged cache is made again.
    writeFileSync(`${stem}_sample_idx.npy`, "torn");
    expect(rowsOf(options, "train", 0, 3)).toEqual(first);
    const files = readdirSync(folder);
    expect(rowsOf({ ...options, seed: 7, cache: false }, "train", 0, 3)).not.toEqual(first);
    expect(readdirSync(folder)).toEqual(files);
  });

  it("computes a kept order again for another split, and for other data under the same name", () => {
    const changing = { ...options, dataPath: write("changing", [5, 3, 7, 2, 9, 4]) };
    const isRight = (now: MegatronGptOptions) =>
      expect(rowsOf(now, "train", 0, 9)).toEqual(rowsOf({ ...now, cache: false }, "train", 0, 9));
    isRight({ ...changing, split: "4,1,1" });
    isRight(changing);
    isRight({ ...changing, split: "4,1,1" });
    write("changing", [4, 3, 7, 2, 9, 5]);
    isRight({ ...changing, split: "4,1,1" });
    isRight(changing);
    write("changing", [2, 1, 1, 2, 1, 4]);
    isRight(changing);
  });

  it("is cut into splits by documents, and begins again when all samples were taken", () => {
    const parts = { ...options, split: "4,1,1", numSamples: {}, cache: false };
    const dataset = megatronGptDataset(parts);
    // Documents of 17, 9 and 4 tokens, of which the last holds no sample.
    expect(dataset.splits).toEqual({ train: { numSamples: 4 }, validation: { numSamples: 2 } });
    expect(
      rowsOf(parts, "validation", 0, 2)
        .flat()
        .every((token) => token >= 400 && token < 500),
    ).toBe(true);
    expect(rowsOf(parts, "train", 4, 1)).toEqual(rowsOf(parts, "train", 0, 1));
    expect(Object.keys(dataset.fingerprint?.() ?? {})).toEqual(["six"]);
  });

  it("is blended of several by weight", () => {
    const other = write("other", [30, 30], 1000);
    const mixed = { ...options, dataPath: [1, dataPath, 3, other], numSamples: { train: 8 }, cache: false };
    const isOther = rowsOf(mixed, "train", 0, 8).map(([token = 0]) => token >= 1000);
    expect(isOther).toEqual([true, false, true, true, false, true, true, true]);
  });

  it("is refused where nothing can be trained on, and where weights are none", () => {
    expect(() => megatronGptDataset({ ...options, length: 100, numSamples: {} })).toThrow(
      expect.objectContaining({ code: "DATA_TOO_SHORT" }),
    );
    expect(() => megatronGptDataset({ ...options, dataPath: ["a", "b"] })).toThrow(
      expect.objectContaining({ code: "DATA_OPTION" }),
    );
  });
});
