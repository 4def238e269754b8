import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as arrow from "apache-arrow";
import { parquetWriteFile } from "hyparquet-writer";
import { afterAll, describe, expect, it } from "vitest";
import { openRecords, type RecordOptions } from "../../../src/library/data/index.ts";
import { startRanges } from "../../fixtures/records/range-server.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-tables-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const how = <T>(options: RecordOptions<T> = {}): RecordOptions<T> => ({
  cacheDir: join(folder, "cache"),
  tell: () => {},
  ...options,
});

const NUM_ROWS = 2_500;
const numbers = Array.from({ length: NUM_ROWS }, (_, row) => row);
const rowOf = (row: number) => ({ text: `тест ${row}`, label: row % 3, bytes: Buffer.from([row % 256, 1]) });

function writeParquet(name: string): string {
  const path = join(folder, name);
  parquetWriteFile({
    filename: path,
    rowGroupSize: 400,
    columnData: [
      { name: "text", data: numbers.map((row) => rowOf(row).text), type: "STRING" },
      { name: "label", data: numbers.map((row) => BigInt(rowOf(row).label)), type: "INT64" },
      { name: "bytes", data: numbers.map((row) => rowOf(row).bytes), type: "BYTE_ARRAY" },
    ],
  });
  return path;
}

function writeArrow(name: string, kind: "file" | "stream"): string {
  const path = join(folder, name);
  const batch = (begin: number) => {
    const rows = numbers.slice(begin, begin + 400).map(rowOf);
    return new arrow.Table({
      text: arrow.vectorFromArray(
        rows.map(({ text }) => text),
        new arrow.Utf8(),
      ),
      label: arrow.vectorFromArray(
        rows.map(({ label }) => BigInt(label)),
        new arrow.Int64(),
      ),
      bytes: arrow.vectorFromArray(
        rows.map(({ bytes }) => new Uint8Array(bytes)),
        new arrow.Binary(),
      ),
      list: arrow.vectorFromArray(
        rows.map(({ label }) => [label, label + 1]),
        new arrow.List(new arrow.Field("item", new arrow.Int32())),
      ),
    });
  };
  const tables = [0, 400, 800, 1_200, 1_600, 2_000, 2_400].map((begin) => batch(begin));
  const table = (tables[0] as arrow.Table).concat(...tables.slice(1));
  writeFileSync(path, arrow.tableToIPC(table, kind));
  return path;
}

const plainRow = ({ text, label, bytes }: Readonly<Record<string, unknown>>) => ({
  text,
  label,
  bytes: Buffer.from(bytes as Uint8Array),
});

describe("tables", () => {
  const makers = {
    parquet: () => writeParquet("a.parquet"),
    "an Arrow file": () => writeArrow("a.arrow", "file"),
    "an Arrow stream": () => writeArrow("b.arrow", "stream"),
  };

  it.each(Object.keys(makers) as (keyof typeof makers)[])(
    "are read by groups of rows, near and far: %s",
    async (kind) => {
      const path = makers[kind]();
      await using server = await startRanges(folder);
      for (const place of [path, `${server.origin}/${path.split("/").at(-1)}`]) {
        const records = await openRecords(place, how({ map: plainRow }));
        expect(records.length).toBe(NUM_ROWS);
        for (const row of [0, 399, 400, 1_777, 2_499]) expect(await records.at(row)).toEqual(rowOf(row));
      }
      const picked = await openRecords(path, how({ columns: "words=text", bad: "leave-out" }));
      expect(await picked.at(2_000)).toEqual({ words: "тест 2000" });
      await expect((await openRecords(path, how({ columns: "words=none" }))).at(0)).rejects.toThrow(
        `a column none at ${path}, record 1, got text, label, bytes`,
      );
    },
  );

  it("leave out single rows that lack a column, and say which", async () => {
    const path = join(folder, "holes.arrow");
    const batch = (labels: readonly (number | null)[]) =>
      new arrow.Table({
        meta: arrow.vectorFromArray(
          labels.map((label) => label && { label }),
          new arrow.Struct([new arrow.Field("label", new arrow.Int32())]),
        ),
      });
    writeFileSync(
      path,
      arrow.tableToIPC(batch([1, null, 3]).concat(batch([null, null]), batch([4, 5, null])), "file"),
    );
    const options = how({ columns: "label=meta.label", bad: "leave-out" });
    const told: string[] = [];
    for (const tell of [(line: string) => void told.push(line), () => {}]) {
      const records = await openRecords(path, { ...options, tell });
      expect(records).toMatchObject({ length: 4, numBad: 4 });
      const read = await Promise.all([0, 1, 2, 3].map((row) => records.at(row)));
      expect(read).toEqual([1, 3, 4, 5].map((label) => ({ label })));
    }
    for (const row of [2, 4, 5, 8]) expect(told.join("\n")).toContain(`holes.arrow, record ${row},`);
  });

  it("of Arrow have lists as arrays", async () => {
    const records = await openRecords(writeArrow("c.arrow", "stream"), how());
    expect(await records.at(1_001)).toMatchObject({ list: [2, 3] });
  });

  it("of Arrow are refused where a dictionary takes the place of another, and read where it grows", async () => {
    const type = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32(), 7);
    const schema = new arrow.Schema([new arrow.Field("word", type, true)]);
    const builderOf = () => arrow.makeBuilder({ type, nullValues: [null] });
    const batchOf = (builder: ReturnType<typeof builderOf>, words: string) => {
      for (const word of words) builder.append(word);
      const children = [builder.flush()];
      return new arrow.RecordBatch(
        schema,
        arrow.makeData({ type: new arrow.Struct(schema.fields), length: words.length, children }),
      );
    };
    const write = (name: string, batches: readonly arrow.RecordBatch[]) => {
      const path = join(folder, name);
      writeFileSync(path, arrow.RecordBatchStreamWriter.writeAll(batches).toUint8Array(true));
      return path;
    };
    const replaced = write("replaced.arrow", [batchOf(builderOf(), "ab"), batchOf(builderOf(), "cd")]);
    await expect(openRecords(replaced, how())).rejects.toThrow(
      /expected a dictionary that goes on at .*replaced\.arrow, byte \d+, got another in its place/,
    );
    const builder = builderOf();
    const grown = write("grown.arrow", [batchOf(builder, "ab"), batchOf(builder, "acd")]);
    const records = await openRecords(grown, how());
    const read = await Promise.all([0, 1, 2, 3, 4].map((row) => records.at(row)));
    expect(read).toEqual([..."abacd"].map((word) => ({ word })));
  });

  it("of Arrow are read from a file that has dictionaries, and its schema at the end alone", async () => {
    const path = join(folder, "d.arrow");
    const words = numbers.map((row) => `word ${row % 7}`);
    writeFileSync(path, arrow.tableToIPC(arrow.tableFromArrays({ words, row: numbers }), "file"));
    const records = await openRecords(path, how());
    expect(records.length).toBe(NUM_ROWS);
    expect(await records.at(2_001)).toEqual({ words: "word 6", row: 2_001 });
  });
});
