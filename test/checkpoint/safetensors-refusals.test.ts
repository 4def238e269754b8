import { open, readFile, truncate, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TroupeError } from "../../src/errors/index.ts";
import { SafetensorsFile } from "../../src/library/checkpoint/format/safetensors-file.ts";
import { writeSafetensors } from "../../src/library/checkpoint/format/safetensors-writer.ts";
import { refusal } from "./refusal.ts";
import { floats, golden, safetensorsFiles } from "./safetensors-files.ts";

const { freshPath, forge } = safetensorsFiles();

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
    ["a tensor without shape", '{"a":{"dtype":"U8","data_offsets":[0,1]}}', bytes(1), "got fewer"],
    ["one offset", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}', bytes(1), "got fewer"],
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

  test("a reader refuses a header larger than the file, than 16 MiB, than the format allows, before reading it", async () => {
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
    const path = freshPath();
    const flips = fc.array(fc.record({ at: fc.nat(headerEnd - 1), to: fc.nat(255) }), {
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(flips, async (changes) => {
        const bad = Buffer.from(good);
        for (const { at, to } of changes) bad[at] = to;
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
