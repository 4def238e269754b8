import { readFile, rm, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toSafetensorsDType } from "../../src/library/checkpoint/format/dtype.ts";
import { SafetensorsFile } from "../../src/library/checkpoint/format/safetensors-file.ts";
import {
  type TensorSource,
  writeSafetensors,
} from "../../src/library/checkpoint/format/safetensors-writer.ts";
import { crc32c } from "../../src/library/checkpoint/storage/summed-file.ts";
import { refusal } from "./refusal.ts";
import { floats, golden, safetensorsFiles } from "./safetensors-files.ts";

const { freshPath } = safetensorsFiles();

describe("a safetensors file", () => {
  test("is written as the reference writer does, byte for byte", async () => {
    const path = freshPath();
    const facts = await writeSafetensors(path, [floats("a", [1.5, -2])], {});
    const bytes = await readFile(path);
    expect(bytes.toString("hex")).toBe(golden);
    expect(facts).toEqual({ sizeBytes: 72, chunkBytes: 1 << 20, crc32c: Uint32Array.of(crc32c(bytes)) });
  });

  test("is read as the reference writer wrote it", async () => {
    const path = freshPath();
    await writeFile(path, Buffer.from(golden, "hex"));
    await using file = await SafetensorsFile.open(path);
    expect(file.tensors.get("a")).toEqual({ name: "a", dtype: "F32", shape: [2], begin: 0, end: 8 });
    expect(file.dataOffset).toBe(64);
    expect(new Float32Array((await file.read("a")).buffer)).toEqual(Float32Array.of(1.5, -2));
  });

  test("gives any tensors back, completely, in part, and into given memory", async () => {
    const dtypes = fc.constantFrom("F32", "BF16", "I64", "U8", "BOOL", "F8_E4M3");
    const tensor = fc.record({
      name: fc.string({ unit: "grapheme", minLength: 1 }).filter((name) => !name.startsWith("__")),
      dtype: dtypes,
      shape: fc.array(fc.nat(5), { maxLength: 4 }),
    });
    const file = fc.record({
      tensors: fc.uniqueArray(tensor, { selector: ({ name }) => name, maxLength: 6 }),
      metadata: fc.dictionary(fc.constantFrom("format", "é"), fc.string({ unit: "grapheme" })),
    });
    const bytesOf = { F32: 4, BF16: 2, I64: 8, U8: 1, BOOL: 1, F8_E4M3: 1 } as const;
    await fc.assert(
      fc.asyncProperty(file, async ({ tensors, metadata }) => {
        const contents = new Map<string, Uint8Array>();
        const sources = tensors.map(({ name, dtype, shape }, index): TensorSource => {
          const sizeBytes = shape.reduce((a, b) => a * b, 1) * bytesOf[dtype];
          const bytes = Uint8Array.from({ length: sizeBytes }, (_, position) => position + 31 * index);
          contents.set(name, bytes);
          return { name, dtype, shape, read: () => inThirds(bytes) };
        });
        const path = freshPath();
        await writeSafetensors(path, sources, metadata);
        await using read = await SafetensorsFile.open(path);
        expect(Object.fromEntries(read.metadata)).toEqual(metadata);
        expect(read.dataOffset % 8).toBe(0);
        expect([...read.tensors.keys()].toSorted()).toEqual(tensors.map(({ name }) => name).toSorted());
        for (const { name, dtype, shape } of tensors) {
          const expected = contents.get(name) as Uint8Array;
          expect(read.entry(name)).toMatchObject({ dtype, shape });
          expect(await read.read(name)).toEqual(expected);
          expect(await read.read(name, new Uint8Array(expected.length))).toEqual(expected);
          const half = expected.length >> 1;
          expect(await read.readRange(name, half, new Uint8Array(expected.length - half))).toEqual(
            expected.slice(half),
          );
        }
        await rm(path);
      }),
      { numRuns: 60 },
    );
  });

  test("spells every dtype of tensors", () => {
    expect(toSafetensorsDType("bfloat16")).toBe("BF16");
  });
});

async function* inThirds(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const third = Math.ceil(bytes.length / 3);
  for (let begin = 0; begin < bytes.length; begin += third) yield bytes.subarray(begin, begin + third);
}

describe("a writer refuses", () => {
  test.each([
    ["fewer bytes than the shape says", () => new Uint8Array(4)],
    ["more bytes than the shape says", () => new Uint8Array(12)],
    ["no bytes", () => inThirds(new Uint8Array(0))],
  ])("%s", async (_, read) => {
    const error = await refusal(() => writeSafetensors(freshPath(), [{ ...floats("a", [1, 2]), read }]));
    expect(error.code).toBe("SAFETENSORS_TENSOR");
    expect(error.message).toContain('8 bytes from the source of tensor "a"');
  });

  test("a name twice, half a character, and what no reader takes", async () => {
    for (const names of [["a", "a"], ["\ud800"], ["__metadata__"], ["__proto__"]]) {
      const error = await refusal(() =>
        writeSafetensors(
          freshPath(),
          names.map((name) => floats(name, [1])),
        ),
      );
      expect(error.code).toBe("SAFETENSORS_TENSOR");
    }
  });

  test("a file that is there already", async () => {
    const path = freshPath();
    await writeFile(path, "mine");
    expect(await refusal(() => writeSafetensors(path, []))).toMatchObject({
      code: "FILE_WRITE",
      fields: { path, reason: "File exists" },
    });
    expect(await readFile(path, "utf8")).toBe("mine");
  });
});
