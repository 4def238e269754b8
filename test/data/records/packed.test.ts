import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { unpackLz4Block, unpackLz4Frame } from "../../../src/library/data/formats/lz4.ts";
import { openRecords, readParquet } from "../../../src/library/data/index.ts";
import written from "./pyarrow.json" with { type: "json" };

const folder = mkdtempSync(join(tmpdir(), "troupe-packed-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const how = { cacheDir: join(folder, "cache"), tell: () => {} };
const bytesOf = (text: string) => Buffer.from(text, "base64");
/** The table of make.py. */
const table = Array.from({ length: 40 }, (_, number) => ({ text: `text ${number % 3}`, none: null }));

describe("packed tables, as pyarrow writes them,", () => {
  it.each(Object.entries(written.parquet))(
    "are read, with a column of nulls: Parquet by %s",
    async (codec, text) => {
      const path = join(folder, `${codec}.parquet`);
      writeFileSync(path, bytesOf(text));
      expect(await readParquet(path)).toEqual(table);
      const records = await openRecords(path, how);
      expect(await Promise.all(table.map(async (_, index) => records.at(index)))).toEqual(table);
    },
  );

  it.each(Object.entries(written.feather))(
    "are read, with a column of nulls: Feather by %s",
    async (codec, text) => {
      const path = join(folder, `${codec}.feather`);
      writeFileSync(path, bytesOf(text));
      const records = await openRecords(path, how);
      expect(await Promise.all(table.map(async (_, index) => records.at(index)))).toEqual(table);
    },
  );
});

describe("LZ4", () => {
  const rows = Array.from({ length: 20_000 }, (_, number) => `row ${number % 97}\n`).join("");
  const [block, frame] = [bytesOf(written.block), bytesOf(written.frame)];

  it("is unpacked: a block, and a frame of blocks that repeat those before them", () => {
    expect(Buffer.from(unpackLz4Block(block, rows.length)).toString()).toBe(rows);
    expect(Buffer.from(unpackLz4Frame(frame, 1 << 20)).toString()).toBe(rows);
  });

  it("is refused in words where it is cut, too large or damaged", () => {
    expect(() => unpackLz4Block(block, rows.length - 1)).toThrow(`LZ4 of more than ${rows.length - 1} bytes`);
    expect(() => unpackLz4Block(block, rows.length + 1)).toThrow("LZ4 of another size");
    expect(() => unpackLz4Block(block.subarray(0, 40), rows.length)).toThrow("LZ4");
    expect(() => unpackLz4Block(Uint8Array.of(0x10, 65, 9, 0, 0), 64)).toThrow(
      "LZ4 that repeats what is not there",
    );
    expect(() => unpackLz4Frame(frame, 1 << 16)).toThrow(`LZ4 of more than ${1 << 16} bytes`);
    for (const end of [3, 9, 500])
      expect(() => unpackLz4Frame(frame.subarray(0, end), 1 << 20)).toThrow("LZ4");
    for (let at = 0; at < frame.length; at++) {
      const damaged = Buffer.from(frame);
      damaged[at] = (damaged[at] as number) ^ 0xff;
      try {
        expect(unpackLz4Frame(damaged, 1 << 20).length).toBeLessThanOrEqual(1 << 20);
      } catch (error) {
        expect((error as Error).message).toContain("LZ4");
      }
    }
  });
});
