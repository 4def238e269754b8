import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { taskNamed } from "../../../src/job/tasks/index.ts";
import { openRecords, type Picture, preferenceOf } from "../../../src/library/data/index.ts";

const python = process.env.TROUPE_PYTHON;
const hasDatasets =
  python !== undefined && spawnSync(python, ["-c", "import datasets, soundfile, PIL"]).status === 0;
if (!hasDatasets)
  console.warn("test/tasks/published: what datasets writes is not read (TROUPE_PYTHON without datasets)");

const root = mkdtempSync(join(tmpdir(), "troupe-published-"));
const before = process.env.TROUPE_CACHE;
afterAll(() => {
  if (before === undefined) delete process.env.TROUPE_CACHE;
  else process.env.TROUPE_CACHE = before;
  rmSync(root, { recursive: true, force: true });
});

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);
const said = (number: number) => [
  { role: "user", content: `q ${number}` },
  { role: "assistant", content: `a ${number}` },
];

/** A task and its example of record n, by the kind of write.py; a picture is known by its red, a recording by its length. */
const kinds: Readonly<
  Record<
    string,
    { readonly task: string; readonly forms: readonly string[]; readonly exampleOf: (n: number) => unknown }
  >
> = {
  texts: {
    task: "sequence_classification",
    forms: ["saved", "parquet", "lines"],
    exampleOf: (n) => ({ text: `text ${n}`, pair: undefined, label: n % 2 }),
  },
  words: {
    task: "token_classification",
    forms: ["saved", "parquet", "lines"],
    exampleOf: (n) => ({ words: ["word", `${n}`], tags: ["0", "1"] }),
  },
  chats: {
    task: "chat",
    forms: ["saved", "parquet", "lines"],
    exampleOf: (n) => ({ messages: said(n), learned: [true] }),
  },
  pictures: {
    task: "image_classification",
    forms: ["saved", "parquet", "tars"],
    exampleOf: (n) => ({ label: n % 2, red: 30 * n }),
  },
  sounds: {
    task: "speech_recognition",
    forms: ["saved", "parquet", "tars"],
    exampleOf: (n) => ({ text: "a".repeat(n + 1), length: 100 + n, sample: expect.closeTo(0.25, 4) }),
  },
};

/** An example, with something of its picture or recording in place of the function that reads it. */
async function plain(example: unknown): Promise<unknown> {
  const { read, samples, ...rest } = example as {
    readonly read?: () => Promise<Picture>;
    readonly samples?: { readonly length: number; read(): Promise<Float32Array> };
  };
  if (read !== undefined) return { ...rest, red: (await read()).colours[0] };
  if (samples === undefined) return rest;
  return { ...rest, length: samples.length, sample: (await samples.read())[99] };
}

describe.skipIf(!hasDatasets)("what datasets writes in three shards", () => {
  beforeAll(() => {
    process.env.TROUPE_CACHE = join(root, "cache");
    const write = [join(import.meta.dirname, "write.py"), join(root, "data")];
    execFileSync(python as string, write, { stdio: ["ignore", "ignore", "inherit"] });
  });

  const cases = Object.entries(kinds).flatMap(([kind, { forms }]) =>
    forms.map((form) => [kind, form] as const),
  );
  it.each(cases)("is a task's data, in order: %s, %s", async (kind, form) => {
    const { task, exampleOf } = kinds[kind] as (typeof kinds)[string];
    const { train, validation = [] } = await taskNamed(task).read(join(root, "data", kind, form));
    expect(await Promise.all(train.map(plain))).toEqual(numbers(7).map(exampleOf));
    expect(await Promise.all(validation.map(plain))).toEqual(numbers(3).map(exampleOf));
  });

  it.each(["saved/train", "parquet/data/train-*.parquet", "lines/train-*.jsonl"])(
    "is records: preferences, %s",
    async (form) => {
      const records = await openRecords(join(root, "data/preferences", form), { map: preferenceOf });
      const read = await Promise.all(numbers(records.length).map(async (index) => records.at(index)));
      expect(read).toEqual(
        numbers(7).map((n) => ({ prompt: said(n).slice(0, 1), chosen: `a ${n}`, rejected: "no" })),
      );
    },
  );
});
