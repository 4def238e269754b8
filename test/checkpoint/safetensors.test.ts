import { mkdtemp, open, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromSafetensorsDType, toSafetensorsDType } from "../../src/checkpoint/dtype.ts";
import { SafetensorsFile } from "../../src/checkpoint/safetensors-file.ts";
import { type TensorSource, writeSafetensors } from "../../src/checkpoint/safetensors-writer.ts";
import { crc32c } from "../../src/checkpoint/summed-file.ts";
import { TroupeError } from "../../src/errors.ts";
import { refusal } from "./refusal.ts";

let folder: string;
let numFiles = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-safetensors-"));
});
afterAll(() => rm(folder, { recursive: true }));

function freshPath(): string {
  return join(folder, `${numFiles++}.safetensors`);
}

/** A file with any header and data, its length prefix right unless given. */
async function forge(header: string, data = new Uint8Array(0), headerBytes?: bigint): Promise<string> {
  const json = Buffer.from(header);
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(headerBytes ?? BigInt(json.length));
  const path = freshPath();
  await writeFile(path, Buffer.concat([prefix, json, data]));
  return path;
}

function floats(name: string, values: number[]): TensorSource {
  return {
    name,
    dtype: "F32",
    shape: [values.length],
    read: () => new Uint8Array(Float32Array.from(values).buffer),
  };
}

const golden =
  "38000000000000007b2261223a7b226474797065223a22463332222c227368617065223a5b325d2c22646174615f6f666673657473223a5b" +
  "302c385d7d7d20200000c03f000000c0";

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

  test("gives any tensors back, whole, into memory given, and in part", async () => {
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

  test("spells every dtype of tensors, and knows those that no tensor has", () => {
    expect(toSafetensorsDType("bfloat16")).toBe("BF16");
    expect(fromSafetensorsDType("BOOL")).toBe("bool");
    expect(fromSafetensorsDType("F8_E4M3")).toBeUndefined();
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

describe("a reader refuses", () => {
  const entry = (begin: number, end: number) =>
    `{"dtype":"U8","shape":[${end - begin}],"data_offsets":[${begin},${end}]}`;
  const bytes = (length: number) => new Uint8Array(length);

  test.each([
    ["an overlap", `{"a":${entry(0, 4)},"b":${entry(2, 6)}}`, bytes(6), "an overlap"],
    ["two tensors on one place", `{"a":${entry(0, 4)},"b":${entry(0, 4)}}`, bytes(4), "an overlap"],
    ["a hole", `{"a":${entry(0, 4)},"b":${entry(5, 8)}}`, bytes(8), "a hole"],
    ["a hole at the front", `{"a":${entry(1, 4)}}`, bytes(4), "a hole"],
    ["offsets beyond the end", `{"a":${entry(0, 9)}}`, bytes(8), "a truncated file"],
    ["bytes after the last tensor", `{"a":${entry(0, 4)}}`, bytes(8), "belong to no tensor"],
    ["data without tensors", "{}", bytes(1), "belong to no tensor"],
    [
      "offsets that run backwards",
      '{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}',
      bytes(1),
      '"a", U8[1]',
    ],
    [
      "a size that its shape denies",
      '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}',
      bytes(8),
      "12 bytes",
    ],
    ["an unknown dtype", '{"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}}', bytes(8), '"F31"'],
    [
      "a dtype of the prototype",
      '{"a":{"dtype":"toString","shape":[],"data_offsets":[0,1]}}',
      bytes(1),
      "toString",
    ],
    [
      "a shape whose product overflows",
      `{"a":{"dtype":"U8","shape":[${2 ** 40},${2 ** 40},0],"data_offsets":[0,0]}}`,
      bytes(0),
      "at most 2^53",
    ],
    ["half a byte", '{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}', bytes(1), "F4[3]"],
    ["a tensor without shape", '{"a":{"dtype":"U8","data_offsets":[0,1]}}', bytes(1), "got less"],
    ["one offset", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}', bytes(1), "got less"],
  ])("%s", async (_, header, data, message) => {
    const error = await refusal(async () => SafetensorsFile.open(await forge(header, data)));
    expect(error.code).toBe("SAFETENSORS_INVALID");
    expect(error.message).toContain(message);
  });

  test.each([
    ["a repeated tensor", `{"a":${entry(0, 1)},"a":${entry(0, 1)}}`],
    ["the prototype as a tensor", `{"__proto__":${entry(0, 1)}}`],
    ["a tensor that is a number", '{"a":1}'],
    ["three offsets", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}'],
    ["seventeen dimensions", `{"a":{"dtype":"U8","shape":[${Array(17).fill(1)}],"data_offsets":[0,1]}}`],
    ["a negative offset", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}'],
    ["a fraction", '{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}'],
    ["an unsafe integer", '{"a":{"dtype":"U8","shape":[9007199254740993],"data_offsets":[0,1]}}'],
    ["an unknown key", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"evil":1}}'],
    ["metadata that is no text", '{"__metadata__":{"a":1}}'],
    ["white space before the header", ` {"a":${entry(0, 1)}}`],
    ["text after the header", `{"a":${entry(0, 1)}}x`],
    ["a list", "[]"],
    ["an empty header", ""],
  ])("%s", async (_, header) => {
    const error = await refusal(async () => SafetensorsFile.open(await forge(header, bytes(1))));
    expect(error.code).toBe("JSON_INVALID");
  });

  test("a header larger than the file, than 16 MiB, than the format allows, before reading it", async () => {
    const beyondFile = await refusal(async () => SafetensorsFile.open(await forge("{}", bytes(0), 3n)));
    expect(beyondFile.message).toContain("a truncated file");
    for (const headerBytes of [(1n << 24n) + 1n, 100_000_001n, (1n << 64n) - 1n]) {
      const options = headerBytes > 100_000_000n ? { maxHeaderBytes: Infinity } : {};
      const error = await refusal(async () =>
        SafetensorsFile.open(await forge("{}", bytes(0), headerBytes), options),
      );
      expect(error.code).toBe("SAFETENSORS_INVALID");
      expect(error.message).toMatch(/a header of at most (16777216|100000000) bytes/);
    }
  });

  test("bytes that are not UTF-8 in the header", async () => {
    const path = await forge('{"abcd":1}');
    const file = await open(path, "r+");
    await file.write(Uint8Array.of(0xff), 0, 1, 11);
    await file.close();
    expect((await refusal(() => SafetensorsFile.open(path))).message).toContain("UTF-8");
  });

  test("a file cut anywhere", async () => {
    for (let size = 0; size < 72; size++) {
      const path = freshPath();
      await writeFile(path, Buffer.from(golden, "hex").subarray(0, size));
      expect((await refusal(() => SafetensorsFile.open(path))).code).toMatch(
        /SAFETENSORS_INVALID|JSON_INVALID/,
      );
    }
  });

  test("any damage to the header, or reads it as another header that fits the data", async () => {
    const whole = freshPath();
    await writeSafetensors(whole, [floats("a", [1, 2, 3]), floats("b", [4])]);
    const good = await readFile(whole);
    const headerEnd = 8 + Number(good.readBigUInt64LE());
    const flips = fc.array(fc.record({ at: fc.nat(headerEnd - 1), to: fc.nat(255) }), {
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(flips, async (changes) => {
        const bad = Buffer.from(good);
        for (const { at, to } of changes) bad[at] = to;
        const path = join(folder, "damaged");
        await writeFile(path, bad);
        try {
          await using file = await SafetensorsFile.open(path);
          for (const [name, { begin, end }] of file.tensors)
            expect((await file.read(name)).length).toBe(end - begin);
        } catch (error) {
          expect(error).toBeInstanceOf(TroupeError);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("a name it does not hold, memory of another size, a part beyond the end", async () => {
    const path = freshPath();
    await writeSafetensors(path, [floats("a", [1, 2])]);
    await using file = await SafetensorsFile.open(path);
    const refusals = [
      () => file.entry("b"),
      () => file.read("toString"),
      () => file.read("a", new Uint8Array(7)),
      () => file.readRange("a", 4, new Uint8Array(5)),
      () => file.readRange("a", -1, new Uint8Array(1)),
    ];
    for (const body of refusals) expect((await refusal(body)).code).toBe("SAFETENSORS_TENSOR");
  });

  test("a file that shrinks while it is open", async () => {
    const path = freshPath();
    await writeSafetensors(path, [floats("a", [1, 2])]);
    await using file = await SafetensorsFile.open(path);
    await truncate(path, file.dataOffset + 3);
    expect((await refusal(() => file.read("a"))).message).toContain("shrunk");
  });
});
