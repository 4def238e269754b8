import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import {
  IndexedDataset,
  type IndexedFormat,
  IndexedWriter,
  indexedDTypeFor,
} from "../../../src/library/data/index.ts";
import { readNpy, writeNpy } from "../../../src/library/data/megatron/numpy/npy.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

let numDatasets = 0;
function write(
  documents: readonly (readonly (readonly number[])[])[],
  dtype: "uint16" | "int32" | "int64" = "uint16",
  format: IndexedFormat = "mmap",
): string {
  const prefix = join(folder, `data-${numDatasets++}`);
  using writer = new IndexedWriter(prefix, dtype, format);
  for (const document of documents) {
    for (const sequence of document) writer.addSequence(sequence);
    writer.endDocument();
  }
  writer.finish();
  return prefix;
}

function documentsOf(data: IndexedDataset): number[][][] {
  const [...bounds] = data.documents;
  return bounds.slice(1).map((end, d) => {
    const begin = bounds[d] as number;
    return Array.from({ length: end - begin }, (_, i) => [...data.get(begin + i)]);
  });
}

const small = [
  [
    [1, 2],
    [3, 4, 5],
  ],
  [[6]],
];

describe("an indexed dataset", () => {
  it("is Megatron's to the byte", () => {
    const prefix = write(small);
    expect(readFileSync(`${prefix}.bin`).toString("hex")).toBe("010002000300040005000600");
    expect(readFileSync(`${prefix}.idx`).toString("hex")).toBe(
      "4d4d4944494458000001000000000000000803000000000000000300000000000000020000000300000001000000000000000000000004000000000000000a00000000000000000000000000000002000000000000000300000000000000",
    );
  });

  it.each([
    ["mmap", "uint16"],
    ["mmap", "int32"],
    ["mmap", "int64"],
    ["cached", "int32"],
    ["cached", "uint16"],
  ] as const)("of format %s and %s gives back what was written, completely and in parts", (format, dtype) => {
    const tokens = fc.array(fc.nat({ max: 65_535 }), { maxLength: 9 });
    const texts = fc.array(fc.array(tokens, { minLength: 1, maxLength: 4 }), { maxLength: 5 });
    fc.assert(
      fc.property(texts, (documents) => {
        using data = IndexedDataset.open(write(documents, dtype, format));
        expect([data.format, data.dtype]).toEqual([format, dtype]);
        expect(documentsOf(data)).toEqual(documents);
        documents.flat().forEach((sequence, i) => {
          const half = sequence.length >> 1;
          expect([...data.get(i, half)]).toEqual(sequence.slice(half));
          expect([...data.get(i, 0, half)]).toEqual(sequence.slice(0, half));
        });
      }),
      { numRuns: 20, seed: 4 },
    );
  });

  it("takes another's documents behind its own", () => {
    using first = IndexedDataset.open(write(small));
    using second = IndexedDataset.open(write([[[7]], [[8], [9, 10]]], "uint16", "cached"));
    const prefix = join(folder, "merged");
    using writer = new IndexedWriter(prefix, "uint16");
    writer.addDataset(first);
    writer.addDataset(second);
    writer.finish();
    using merged = IndexedDataset.open(prefix);
    expect(documentsOf(merged)).toEqual([...documentsOf(first), ...documentsOf(second)]);
    expect(readFileSync(`${prefix}.bin`)).toEqual(
      Buffer.concat([first, second].map((data) => readFileSync(`${data.prefix}.bin`))),
    );
  });

  it("an index does not exist until it is complete, and an abandoned one leaves nothing behind", () => {
    const before = readdirSync(folder);
    {
      using writer = new IndexedWriter(join(folder, "never"), "int32");
      writer.addSequence([1, 2, 3]);
      expect(
        readdirSync(folder).filter((name) => name.startsWith("never") && !name.includes(".tmp-")),
      ).toEqual([]);
    }
    expect(readdirSync(folder)).toEqual(before);
  });

  it("takes two bytes a token where the vocabulary lets it", () => {
    expect([undefined, 65_499, 65_500].map(indexedDTypeFor)).toEqual(["int32", "uint16", "int32"]);
  });

  it.each<[string, (prefix: string) => void, RegExp]>([
    ["cut short", (prefix) => truncateSync(`${prefix}.idx`, 90), /94 bytes for 3 sequences .* got 90/],
    ["without tokens", (prefix) => rmSync(`${prefix}.bin`), /got no such file/],
    [
      "with tokens cut short",
      (prefix) => truncateSync(`${prefix}.bin`, 10),
      /12 bytes, as its index says.* got 10/,
    ],
    ["of floats", (prefix) => overwrite(prefix, 17, 6), /code in 1, 2, 3, 4, 5, 8 .* got 6/],
    ["of another version", (prefix) => overwrite(prefix, 9, 2), /version 1 .* got 2/],
    ["of something else", (prefix) => writeFileSync(`${prefix}.idx`, "PK"), /MMIDIDX or TNTIDX .* got "PK"/],
    ["whose documents end elsewhere", (prefix) => overwrite(prefix, 86, 2), /end with sequence 3 .* got 2/],
    ["whose sequences overlap", (prefix) => overwrite(prefix, 54, 2), /sequence 1 at byte 4.* got 2/],
  ])("%s is refused, and named", (_what, damage, message) => {
    const prefix = write(small);
    damage(prefix);
    expect(() => IndexedDataset.open(prefix)).toThrow(
      expect.objectContaining({ code: "DATA_INDEX", message: expect.stringMatching(message) }),
    );
  });
});

function overwrite(prefix: string, at: number, byte: number): void {
  const bytes = readFileSync(`${prefix}.idx`);
  bytes[at] = byte;
  writeFileSync(`${prefix}.idx`, bytes);
}

describe("an .npy file", () => {
  it("has numpy's header, padded to 64 bytes, and gives back what was written", () => {
    const path = join(folder, "pairs.npy");
    const data = Int32Array.of(0, 0, 1, 5, 2, 7);
    writeNpy(path, { shape: [3, 2], data });
    const bytes = readFileSync(path);
    expect(bytes.toString("latin1", 0, 128)).toBe(
      `\x93NUMPY\x01\x00v\x00${"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }".padEnd(117)}\n`,
    );
    expect(readNpy(path)).toEqual({ shape: [3, 2], data });
    writeNpy(path, { shape: [2], data: Uint32Array.of(7, 2 ** 32 - 1) });
    expect(readFileSync(path).toString("latin1", 10, 128)).toContain("'shape': (2,), }");
    expect(readNpy(path).data).toEqual(Uint32Array.of(7, 2 ** 32 - 1));
    truncateSync(path, 130);
    expect(() => readNpy(path)).toThrow(expect.objectContaining({ code: "DATA_INDEX" }));
  });
});
