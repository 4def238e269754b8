import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import type { Batch } from "../../../src/library/data/index.ts";
import { openRecords, type RecordOptions, sampleDataset } from "../../../src/library/data/index.ts";
import { startRanges } from "../../fixtures/records/range-server.ts";
import { tarFiles, tarOf } from "../../fixtures/records/tar-of.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-records-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const reported: string[] = [];
const how = <T>(options: RecordOptions<T> = {}): RecordOptions<T> => ({
  cacheDir: join(folder, "cache"),
  tell: (line) => void reported.push(line),
  ...options,
});

function write(name: string, bytes: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

const linesOf = (begin: number, end: number): string =>
  Array.from(
    { length: end - begin },
    (_, index) => `${JSON.stringify({ number: begin + index, text: "é".repeat(index % 7) })}\n`,
  ).join("");

const tarOfNumbers = (begin: number, end: number): Buffer =>
  tarOf(
    Array.from({ length: end - begin }, (_, index) => begin + index).flatMap((number) => [
      { name: `some/n${number}.json`, data: JSON.stringify({ number }) },
      { name: `some/n${number}.cls`, data: `${number % 10}\n` },
      { name: `some/n${number}.seg.bin`, data: Buffer.from([number % 256]) },
    ]),
  );

async function allOf<T>(records: {
  readonly length: number;
  at(index: number): T | PromiseLike<T>;
}): Promise<T[]> {
  return Promise.all(Array.from({ length: records.length }, (_, index) => records.at(index)));
}

describe("records", () => {
  it("of JSON lines are read by blocks that a line never leaves, empty lines left out", async () => {
    const path = write("a.jsonl", `\n${linesOf(0, 500)}  \r\n\n{"number":500,"text":"last"}`);
    const records = await openRecords<{ number: number }>(path, how({ blockBytes: 100 }) as never);
    expect(records.length).toBe(501);
    expect((await allOf(records)).map(({ number }) => number)).toEqual(
      Array.from({ length: 501 }, (_, index) => index),
    );
  });

  it("of a tar are its members by endings, with texts, classes and JSON read", async () => {
    const path = write("a.tar", tarOfNumbers(0, 300));
    const records = await openRecords(path, how({ blockBytes: 5_000 }));
    expect(records.length).toBe(300);
    expect(await records.at(257)).toEqual({
      __key__: "some/n257",
      json: { number: 257 },
      cls: 7,
      "seg.bin": Buffer.from([1]),
    });
  });

  it("of a tar have long names by pax and GNU; folders, links and hidden members are no records", async () => {
    const long = `${"deep/".repeat(30)}sample`;
    const pax = (name: string) => {
      const line = ` path=${name}\n`;
      const length = line.length + 3;
      return `${length}${line}`;
    };
    const path = write(
      "long.tar",
      tarOf([
        { name: "some/", data: "", kind: "5" },
        { name: "pax", data: pax(`${long}.txt`), kind: "x" },
        { name: "short", data: "by pax" },
        { name: "link.txt", data: "", kind: "2" },
        { name: "./.hidden.txt", data: "no" },
        { name: "__meta__.json", data: "{" },
        { name: "README", data: "no" },
        { name: "long", data: `${long}2.txt\0`, kind: "L" },
        { name: "short", data: "by GNU" },
      ]),
    );
    expect(await allOf(await openRecords(path, how()))).toEqual([
      { __key__: long, txt: "by pax" },
      { __key__: `${long}2`, txt: "by GNU" },
    ]);
  });

  it.each(["gzip and zstd", "over HTTP"] as const)("are the same, packed or far away: %s", async (way) => {
    const [lines, tar] = [
      write(`b ${way}.jsonl`, linesOf(0, 400)),
      write(`b ${way}.tar`, tarOfNumbers(0, 400)),
    ];
    const expected = await allOf(await openRecords([lines, tar], how({ blockBytes: 3_000 })));
    if (way === "gzip and zstd") {
      const packed = [
        write("b.jsonl.gz", gzipSync(linesOf(0, 400))),
        write("b.tgz", gzipSync(tarOfNumbers(0, 400))),
      ];
      // Two frames, one after the other.
      const frames = [linesOf(0, 400).slice(0, 5_000), linesOf(0, 400).slice(5_000)].map((text) =>
        zstdCompressSync(text),
      );
      const skipped = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
      packed[0] = write("b.jsonl.zst", Buffer.concat([skipped, ...frames]));
      const cut = write("cut.jsonl.zst", Buffer.concat(frames).subarray(0, -9));
      await expect(openRecords(cut, how())).rejects.toThrow(
        `a complete frame of zstd at ${cut}, got one that was cut`,
      );
      for (let time = 0; time < 2; time++)
        expect(await allOf(await openRecords(packed, how({ blockBytes: 3_000 })))).toEqual(expected);
      return;
    }
    await using server = await startRanges(folder);
    const far = await openRecords(
      [`${server.origin}/b ${way}.{jsonl,tar}?token=secret`],
      how({ blockBytes: 3_000 }),
    );
    expect(await allOf(far)).toEqual(expected);
    expect(far.fingerprint()).toEqual(
      (await openRecords([lines, tar], how({ blockBytes: 3_000 }))).fingerprint(),
    );
  });

  it("over HTTP survive a server that stops, cuts an answer or is busy, and refuse one without ranges, or another file", async () => {
    write("c.jsonl", linesOf(0, 100));
    await using server = await startRanges(folder);
    const faults = [503, "cut", 429] as const;
    let numFaults = 0;
    server.fault = (_path, numAsked) => (numAsked === 0 ? faults[numFaults++ % faults.length] : undefined);
    const records = await openRecords<{ number: number }>(
      `${server.origin}/c.jsonl`,
      how({ blockBytes: 1_000 }) as never,
    );
    expect((await allOf(records)).map(({ number }) => number)).toEqual(
      Array.from({ length: 100 }, (_, index) => index),
    );
    server.fault = () => "no ranges";
    await expect(openRecords(`${server.origin}/c.jsonl?token=secret`, how())).rejects.toThrow(
      `[data] expected a server that answers ranges (status 206) at ${server.origin}/c.jsonl, got status 200 (copy the file to this machine, or to a server with ranges)`,
    );
    server.fault = () => undefined;
    await expect(openRecords(`${server.origin}/none.jsonl`, how())).rejects.toMatchObject({
      code: "DATA_MISSING",
    });
    const again = await openRecords(`${server.origin}/c.jsonl`, how());
    write("c.jsonl", linesOf(0, 101));
    await expect(again.at(3)).rejects.toMatchObject({ code: "DATA_CHANGED" });
  });

  it("that are bad are named by file and place, and refused or left out", async () => {
    const path = write("bad.jsonl", `${linesOf(0, 3)}{"number": 3\n[4]\n${linesOf(5, 8)}`);
    await expect(openRecords(path, how())).rejects.toThrow(`at ${path}:4, got `);
    reported.length = 0;
    const records = await openRecords<{ number: number }>(
      path,
      how({ bad: "leave-out", blockBytes: 60 }) as never,
    );
    expect((await allOf(records)).map(({ number }) => number)).toEqual([0, 1, 2, 5, 6, 7]);
    expect(records.numBad).toBe(2);
    expect(reported).toEqual([expect.stringContaining(`${path}:4`), expect.stringContaining(`${path}:5`)]);
    const lacking = write("lacking.jsonl", '{"a": {"b": 1}}\n{"a": 2}\n{"a": {"b": 3}}\n');
    await expect(openRecords(lacking, how({ columns: "number=a.b" }))).rejects.toThrow(
      `[data] expected a column a.b at ${lacking}:2, got a`,
    );
    expect(await allOf(await openRecords(lacking, how({ columns: "number=a.b", bad: "leave-out" })))).toEqual(
      [{ number: 1 }, { number: 3 }],
    );
  });

  it("of a damaged tar are named by byte or sample, and those after the damage are read", async () => {
    const numbers = (begin: number, end: number) => tarOfNumbers(begin, end).subarray(0, -1024);
    const twice = tarFiles([
      { name: "twice.txt", data: "1" },
      { name: "twice.TXT", data: "2" },
      { name: "broken.json", data: "{" },
    ]);
    const damage = Buffer.alloc(1_536, "no header ");
    const path = write(
      "bad.tar",
      Buffer.concat([numbers(0, 3), damage, twice, numbers(3, 6), numbers(6, 7).subarray(0, -700)]),
    );
    await expect(openRecords(path, how())).rejects.toThrow(
      `[data] expected a tar's header at ${path}, byte 9216, got other bytes`,
    );
    const records = await openRecords<{ json: { number: number } }>(
      path,
      how({ bad: "leave-out", blockBytes: 4_000 }) as never,
    );
    expect((await allOf(records)).map(({ json }) => json.number)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(records.numBad).toBe(4);
  });

  it("that a map refuses are named and left out when they are searched, once, or refused where they are read", async () => {
    const path = write("d.jsonl", linesOf(0, 10));
    const { TroupeError } = await import("../../../src/errors/index.ts");
    let numMapped = 0;
    const map = async ({ number }: { number?: unknown }, place: string) => {
      numMapped++;
      if (Number(number) % 5 !== 4) return number as number;
      throw new TroupeError("DATA_EXAMPLE", { where: "data", expected: "no four", got: place });
    };
    reported.length = 0;
    for (const numMaps of [10 + 8, 8]) {
      numMapped = 0;
      const records = await openRecords(path, how({ bad: "leave-out", map, blockBytes: 100 }));
      expect(await allOf(records)).toEqual([0, 1, 2, 3, 5, 6, 7, 8]);
      expect(records.numBad).toBe(2);
      expect(numMapped).toBe(numMaps);
    }
    expect(reported).toEqual(
      [5, 10, 5, 10].map((at) => expect.stringContaining(`got ${path}, record ${at}`)),
    );
    await expect(allOf(await openRecords(path, how({ map })))).rejects.toThrow(`got ${path}, record 5`);
    const failing = () => {
      throw new Error("not the record's fault");
    };
    await expect(openRecords(path, how({ bad: "leave-out", map: failing }))).rejects.toThrow("fault");
  });

  it("are not searched again by another run, unless the file is another", async () => {
    const path = write("e.jsonl", linesOf(0, 10));
    await openRecords(path, how());
    await using server = await startRanges(folder);
    await openRecords(`${server.origin}/e.jsonl`, how());
    const before = server.numBytes;
    expect((await openRecords(`${server.origin}/e.jsonl`, how())).length).toBe(10);
    expect(server.numBytes - before).toBe(1);
  });

  it("are each read once an epoch, in an order that seed and position alone decide, mixed beyond their blocks", async () => {
    const paths = [0, 1, 2].map((file) => write(`f${file}.jsonl`, linesOf(file * 400, (file + 1) * 400)));
    const open = () =>
      openRecords(
        paths,
        how({ blockBytes: 1_000, windowBytes: 5_000, map: ({ number }) => number as number }),
      );
    const datasetOf = async (seed: number) =>
      sampleDataset({
        facts: { source: "numbers" },
        splits: { train: await open() },
        collate: (numbers: readonly number[]) => ({ numbers }) as Batch,
        seed,
      });
    const take = async (
      dataset: Awaited<ReturnType<typeof datasetOf>>,
      begin: number,
      end: number,
      size: number,
    ) => {
      const all: number[] = [];
      for (let at = begin; at < end; at += size) {
        const { numbers } = (await dataset.batch("train", at, Math.min(size, end - at))) as unknown as {
          numbers: number[];
        };
        all.push(...numbers);
      }
      return all;
    };
    const first = await take(await datasetOf(1), 0, 3_000, 7);
    const sorted = Array.from({ length: 1_200 }, (_, index) => index);
    for (const epoch of [0, 1]) {
      const own = first.slice(epoch * 1_200, (epoch + 1) * 1_200);
      expect(own.toSorted((one, other) => one - other)).toEqual(sorted);
      expect(own).not.toEqual(sorted);
    }
    expect(first.slice(0, 1_200)).not.toEqual(first.slice(1_200, 2_400));
    expect(await take(await datasetOf(2), 0, 100, 10)).not.toEqual(first.slice(0, 100));
    // Resumed in the middle, with other batches.
    expect(await take(await datasetOf(1), 1_777, 3_000, 16)).toEqual(first.slice(1_777));
    const jumps = first.slice(1).filter((number, at) => Math.abs(number - (first[at] ?? 0)) > 40).length;
    expect(jumps / first.length).toBeGreaterThan(0.5);
  });

  it("of a large file are found by another thread, with the same sentences", async () => {
    const filler = "x".repeat(1_000);
    const lines = Array.from({ length: 35_000 }, (_, number) => `{"number":${number},"text":"${filler}"}\n`);
    const path = write("large.jsonl", lines.join(""));
    const records = await openRecords<{ number: number }>(path, how({ columns: "number=number" }) as never);
    expect(records.length).toBe(35_000);
    expect((await records.at(34_567)).number).toBe(34_567);
    lines[30_000] = "{}\n";
    const lacking = write("large-lacking.jsonl", lines.join(""));
    await expect(openRecords(lacking, how({ columns: "number=number" }))).rejects.toMatchObject({
      code: "DATA_EXAMPLE",
      message: `[data] expected a column number at ${lacking}:30001, got none`,
    });
  });

  it("of a source of one's own are shuffled like any", async () => {
    const { cifar10 } = await import("../../fixtures/docs/records.ts");
    const record = (label: number) => Buffer.concat([Buffer.from([label]), Buffer.alloc(3_072, label)]);
    const train = await cifar10(write("cifar.bin", Buffer.concat([0, 1, 2, 3].map(record))));
    const dataset = sampleDataset({
      facts: { source: "pictures" },
      splits: { train },
      collate: (samples) =>
        ({
          labels: samples.map(({ label }) => label),
          pixels: samples.map(({ pixels }) => pixels.max().item()),
        }) as unknown as Batch,
      seed: 1,
    });
    const { labels, pixels } = (await dataset.batch("train", 0, 4)) as unknown as Record<string, number[]>;
    expect(labels?.toSorted()).toEqual([0, 1, 2, 3]);
    expect(pixels).toEqual(labels?.map((label) => Math.fround(label / 255)));
  });

  it("are refused in one sentence: options, names, nothing", async () => {
    const empty = write("empty.jsonl", "\n\n");
    await expect(openRecords(empty, how())).rejects.toMatchObject({ code: "DATA_EMPTY" });
    await expect(openRecords(write("a.docx", ""), how())).rejects.toThrow("files whose names end in");
    await expect(openRecords(join(folder, "none*.tar"), how())).rejects.toMatchObject({
      code: "DATA_MISSING",
    });
    for (const number of [0, 1, 3]) write(`part-${number}.jsonl`, `{"number":${number}}\n`);
    expect((await openRecords(join(folder, "part-{0..1}.jsonl"), how())).length).toBe(2);
    expect((await openRecords(join(folder, "part-{3,0}.json{l,l}"), how())).length).toBe(4);
    await expect(openRecords(join(folder, "part-{0..3}.jsonl"), how())).rejects.toThrow("part-2.jsonl");
    await expect(openRecords(join(folder, "{part,none}-*.jsonl"), how())).rejects.toThrow("none-*.jsonl");
    await expect(openRecords(empty, { blockbytes: 1 } as never)).rejects.toThrow("blockBytes");
    await expect(openRecords(empty, how({ windowBytes: 0 }))).rejects.toThrow(
      "windowBytes to be a whole number from 1 on, got 0",
    );
    await expect(openRecords(empty, how({ columns: "a" }))).rejects.toThrow(
      "columns as NAME=COLUMN,NAME=COLUMN",
    );
    const bomb = write("bomb.jsonl.gz", gzipSync(Buffer.alloc(80 << 20)));
    await expect(openRecords(bomb, how())).rejects.toThrow(`bytes, unpacked at ${bomb}, got more`);
    await expect(openRecords(write("cut.jsonl.gz", gzipSync("{}").subarray(0, 15)), how())).rejects.toThrow(
      "packed by gzip",
    );
  });
});
