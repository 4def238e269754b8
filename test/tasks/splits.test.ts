import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { causalLm } from "../../src/job/tasks/causal-lm.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-splits-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A folder with files of two texts each, which are named after them. */
function folderOf(names: readonly string[]): string {
  const folder = mkdtempSync(join(root, "data-"));
  for (const name of names) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    const line = (index: number) => JSON.stringify({ text: `${name} ${index}` });
    writeFileSync(join(folder, name), `${line(0)}\n${line(1)}\n`);
  }
  return folder;
}

/** The files that each split is read from, in order. */
async function splitsOf(names: readonly string[]): Promise<Record<string, string[]>> {
  const examples = await causalLm.read(folderOf(names));
  return Object.fromEntries(
    Object.entries(examples).map(([split, texts]) => [
      split,
      texts.filter((text) => text.endsWith(" 0")).map((text) => text.slice(0, -2)),
    ]),
  );
}

describe("the files of a split", () => {
  it.each([
    [
      "numbers in their order, not that of the names",
      [2, 10, 0, 1, 3, 4, 5, 6, 7, 8, 9].map((n) => `train-${n}.jsonl`),
    ],
    ["numbers from 1 on", ["train_1.jsonl", "train_2.jsonl"]],
    ["numbers with zeros", ["train000.jsonl", "train001.jsonl", "train002.jsonl"]],
    ["a dot before the number, as C4 has it", ["train.00000-of-00002.jsonl", "train.00001-of-00002.jsonl"]],
    ["a hash after the number", ["train-00000-of-00002-1f.jsonl", "train-00001-of-00002-0a.jsonl"]],
  ])("may have %s", async (_, names) => {
    const numberOf = (name: string) => Number(/\d+/.exec(name)?.[0]);
    const sorted = names.toSorted((a, b) => numberOf(a) - numberOf(b));
    expect(await splitsOf([...names, "dev.jsonl"])).toEqual({ train: sorted, validation: ["dev.jsonl"] });
  });

  it("may lie in folders: of the split, or of all", async () => {
    expect(
      await splitsOf(["train/data-1.jsonl", "train/data-0.jsonl", "test/data-0.jsonl", "README.md"]),
    ).toEqual({
      train: ["train/data-0.jsonl", "train/data-1.jsonl"],
      validation: ["test/data-0.jsonl"],
    });
    const shards = ["data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl"];
    expect(await splitsOf([...shards, "data/validation-00000-of-00001.jsonl"])).toEqual({
      train: shards,
      validation: ["data/validation-00000-of-00001.jsonl"],
    });
  });

  it("may be JSON: a list or lines, of the split's name alone or named themselves", async () => {
    const folder = folderOf(["train-0.json", "train-1.json", "train_config.json", "dataset_info.json"]);
    const texts = [{ text: "first" }, { text: "second" }];
    writeFileSync(join(folder, "train-1.json"), JSON.stringify(texts, undefined, 2));
    const { train, validation } = await causalLm.read(folder);
    expect([...train, ...(validation ?? [])]).toEqual([
      "train-0.json 0",
      "train-0.json 1",
      "first",
      "second",
    ]);
    const alone = join(folder, "alpaca_data.json");
    writeFileSync(alone, JSON.stringify([...texts, { text: "third" }, 4]));
    await expect(causalLm.read(alone)).rejects.toThrow(
      `expected a JSON object at ${alone}, example 4, got 4`,
    );
    writeFileSync(alone, JSON.stringify(texts));
    expect((await causalLm.read(alone)).train).toEqual(["first"]);
  });

  it("are one where a name only ends in a number, and hidden ones are none", async () => {
    const names = ["train-2024.jsonl", "dev-v1.1.jsonl"];
    const { train, validation } = await splitsOf([...names, "._train-2024.jsonl"]);
    expect([train, validation]).toEqual([["train-2024.jsonl"], ["dev-v1.1.jsonl"]]);
  });

  const expected = "expected shards of train with all numbers from";
  it.each([
    ["a gap", ["train-0.jsonl", "train-2.jsonl"], `${expected} 0 on`, "train-2.jsonl in place of number 1"],
    ["a number twice", ["train-0.jsonl", "train-00.jsonl"], `${expected} 0 on`, "in place of number 1"],
    [
      "no beginning",
      ["train-4.jsonl", "train-5.jsonl"],
      `${expected} 0 on`,
      "train-4.jsonl in place of number 0",
    ],
    ["a shard too few", ["train-0-of-2.jsonl"], "expected all 2 shards of train", "got the first 1"],
    [
      "a file beside shards of it",
      ["train.jsonl", "train-0.jsonl"],
      "for train at",
      "train-0.jsonl, train.jsonl",
    ],
    ["two formats", ["train.txt", "train.jsonl"], "for train at", "train.jsonl, train.txt"],
    ["two names", ["a/train.jsonl", "b/train.jsonl"], "for train at", "a/train.jsonl, b/train.jsonl"],
    [
      "two held out",
      ["train.jsonl", "dev_matched.jsonl", "dev_mismatched.jsonl"],
      "for validation at",
      "dev_matched",
    ],
    ["none named as a split's", ["a.txt", "b.txt"], "for train at", "a.txt, b.txt"],
  ])("are refused in a sentence where there is %s", async (_, names, what, got) => {
    const read = causalLm.read(folderOf(names));
    await expect(read).rejects.toThrow(what);
    await expect(read).rejects.toThrow(got);
  });
});
