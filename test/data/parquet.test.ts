import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetWriteFile } from "hyparquet-writer";
import { afterAll, describe, expect, it } from "vitest";
import { sequenceClassification } from "../../src/job/tasks/sequence-classification.ts";
import { readParquet } from "../../src/library/data/index.ts";

describe("Parquet", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, numRows: number, codec: "SNAPPY" | "UNCOMPRESSED") => {
    const path = join(folder, name);
    const rows = Array.from({ length: numRows }, (_, index) => index);
    parquetWriteFile({
      filename: path,
      codec,
      columnData: [
        { name: "sentence1", data: rows.map((row) => `Первый ${row}`), type: "STRING" },
        { name: "sentence2", data: rows.map((row) => `zweiter ${row}`), type: "STRING" },
        { name: "label", data: rows.map((row) => BigInt(row % 2)), type: "INT64" },
        { name: "idx", data: rows, type: "INT32" },
      ],
    });
    return path;
  };

  it.each(["SNAPPY", "UNCOMPRESSED"] as const)(
    "is read row by row, whole numbers as numbers: %s",
    async (codec) => {
      const rows = await readParquet(write("any.parquet", 2500, codec));
      expect(rows).toHaveLength(2500);
      expect(rows[2499]).toEqual({
        sentence1: "Первый 2499",
        sentence2: "zweiter 2499",
        label: 1,
        idx: 2499,
      });
      rmSync(join(folder, "any.parquet"));
    },
  );

  it("is a task's data by the names that Hugging Face's hub gives its files", async () => {
    write("train-00000-of-00001.parquet", 5, "SNAPPY");
    write("validation-00000-of-00001.parquet", 3, "SNAPPY");
    const { train, validation } = await sequenceClassification.read(folder);
    expect([train.length, validation?.length]).toEqual([5, 3]);
    expect(train[1]).toEqual({ text: "Первый 1", pair: "zweiter 1", label: 1 });
    rmSync(join(folder, "train-00000-of-00001.parquet"));
    const first = write("train-00000-of-00002.parquet", 4, "SNAPPY");
    await expect(sequenceClassification.read(folder)).rejects.toThrow(
      `expected all 2 shards of train beside ${first}, got the first 1 (name the folder that has them)`,
    );
    const twice = write("train-0-of-00002.parquet", 2, "SNAPPY");
    await expect(sequenceClassification.read(folder)).rejects.toThrow("in place of number 1");
    rmSync(twice);
    write("train-00001-of-00002.parquet", 2, "SNAPPY");
    const sharded = await sequenceClassification.read(folder);
    expect(sharded.train.map(({ text }) => text.slice(-1))).toEqual(["0", "1", "2", "3", "0", "1"]);
  });

  it("is refused by name where it is none", async () => {
    const path = join(folder, "none.parquet");
    writeFileSync(path, "PAR1 is what it begins with");
    await expect(readParquet(path)).rejects.toThrow(/expected a readable file at .*none.parquet/);
  });
});
