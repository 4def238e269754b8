import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { IndexedDataset } from "../../src/library/data/index.ts";
import { sharedPath } from "../fixtures/shared.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

function preprocess(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [troupe, "preprocess", ...args], (_error, out, err) => {
      resolve({ code: child.exitCode, out, err });
    });
  });
}

/** A file of these lines. */
function corpus(name: string, lines: readonly (object | string)[]): string {
  const path = join(folder, name);
  writeFileSync(
    path,
    lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""),
  );
  return path;
}

function sequencesOf(data: IndexedDataset): number[][] {
  return Array.from({ length: data.length }, (_, i) => [...data.get(i)]);
}

const vocabularies = sharedPath("data/vocab");

describe.skipIf(vocabularies === undefined)("troupe preprocess", () => {
  const gpt2 = [
    "--tokenizer-type",
    "GPT2BPETokenizer",
    "--vocab",
    join(vocabularies ?? "", "gpt2-vocab.json"),
    "--merge-file",
    join(vocabularies ?? "", "gpt2-merges.txt"),
  ];
  const bert = ["--vocab-file", join(vocabularies ?? "", "bert-base-uncased-vocab.txt")];
  const texts = ["Hello, my dog is cute", "", "Hello world"];

  it("makes a document of each line that says something, in order, with an end, as Megatron names and writes it", async () => {
    const input = corpus("gpt.jsonl", [...texts.map((text) => ({ text, title: "dog" })), "  "]);
    const prefix = join(folder, "gpt");
    const { code, out, err } = await preprocess(
      "--input",
      input,
      "--output-prefix",
      prefix,
      ...gpt2,
      "--append-eod",
      "--json-keys",
      "text",
      "title",
      "--dataset-impl",
      "mmap",
      "--workers",
      "2",
      "--tensor-model-parallel-size",
      "2",
      "--plain-loop",
    );
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(
      /^3 documents, 16 tokens, \d+ a second\na plain loop: \d+ a second, [\d.]+ x\nvocabulary: 50257, padded to 50432\n/,
    );
    using data = IndexedDataset.open(`${prefix}_text_document`);
    expect(data.dtype).toBe("uint16");
    expect(sequencesOf(data)).toEqual([
      [15496, 11, 616, 3290, 318, 13779, 50256],
      [15496, 995, 50256],
    ]);
    expect([...data.documents]).toEqual([0, 1, 2]);
    using titles = IndexedDataset.open(`${prefix}_title_document`);
    expect(titles.length).toBe(3);
  });

  it("counts BERT's [BOS] and [EOS] as Megatron does, which decides of two bytes a token or four", async () => {
    const input = corpus("few.jsonl", [{ text: "w7 w9" }]);
    for (const [numWords, size, dtype] of [
      [65_492, 65_499, "uint16"],
      [65_493, 65_500, "int32"],
    ] as const) {
      const vocab = join(folder, `${numWords}.txt`);
      const words = Array.from({ length: numWords }, (_, word) => `w${word}`);
      writeFileSync(vocab, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ...words].join("\n"));
      const prefix = join(folder, `few-${numWords}`);
      const made = ["--input", input, "--output-prefix", prefix, "--workers", "1"];
      const { out } = await preprocess(
        ...made,
        "--tokenizer-type",
        "BertWordPieceLowerCase",
        "--vocab",
        vocab,
      );
      expect(out).toContain(`vocabulary: ${size}, padded`);
      using data = IndexedDataset.open(`${prefix}_text_document`);
      expect([data.dtype, [...data.get(0)]]).toEqual([dtype, [12, 14]]);
    }
  });

  it("makes one document of a line whose text has separators of lines and paragraphs", async () => {
    const vocab = join(folder, "letters.txt");
    writeFileSync(vocab, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"].join("\n"));
    const input = corpus("separators.jsonl", [
      { text: "a\u2028b\u2029a" },
      `${JSON.stringify({ text: "b" })}\r`,
    ]);
    const prefix = join(folder, "separators");
    const { code, err } = await preprocess(
      ...["--input", input, "--output-prefix", prefix, "--workers", "1", "--plain-loop"],
      ...["--tokenizer-type", "BertWordPieceCase", "--vocab", vocab],
    );
    expect([code, err]).toEqual([0, ""]);
    using data = IndexedDataset.open(`${prefix}_text_document`);
    expect(sequencesOf(data)).toEqual([[5, 6, 5], [6]]);
  });

  it("cuts sentences as Punkt does where it is given what that learnt, keeps newlines where asked, and refuses both alone", async () => {
    const learnt = join(folder, "punkt_tab/english");
    mkdirSync(learnt, { recursive: true });
    const files = { abbrev_types: "mr\n", sent_starters: "", collocations: "", ortho_context: "the\t34\n" };
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(learnt, `${name}${/types|starters/.test(name) ? ".txt" : ".tab"}`), text);
    const input = corpus("mr.jsonl", [{ text: "Mr. Dog is cute.\nThe dog!\n" }]);
    const punkt = ["--punkt", join(folder, "punkt_tab")];
    const made = async (name: string, ...flags: string[]) => {
      const prefix = join(folder, name);
      const { code, err } = await preprocess(
        ...["--input", input, "--output-prefix", prefix, ...gpt2, "--workers", "1"],
        ...["--split-sentences", ...flags],
      );
      expect([code, err]).toEqual([0, ""]);
      using data = IndexedDataset.open(`${prefix}_text_sentence`);
      return sequencesOf(data);
    };
    const [mister, space, newline] = [[5246, 13], 220, 198];
    const [cute, dog] = [
      [8532, 318, 13779, 13],
      [464, 3290, 0],
    ];
    expect(await made("eaten", ...punkt)).toEqual([[...mister, ...cute], dog]);
    expect(await made("kept", ...punkt, "--keep-newlines")).toEqual([[...mister, ...cute, newline], dog]);
    const ofUnicode = [[...mister, space], [32942, ...cute.slice(1), newline], dog];
    expect(await made("unicode", "--keep-newlines")).toEqual(ofUnicode);
    for (const flags of [punkt, ["--keep-newlines"]]) {
      const { err } = await preprocess("--input", input, "--output-prefix", "x", ...gpt2, ...flags);
      expect(err).toContain(`expected ${flags[0]} with --split-sentences, got ${flags[0]} alone`);
    }
  });

  it("gives the same bytes whatever number of threads, sentences and formats included", async () => {
    const lines = Array.from({ length: 500 }, (_, i) => ({
      text: `This is line ${i}. It has two sentences! Café no. ${i * 7}`,
    }));
    const input = corpus("many.jsonl", lines);
    const made = [1, 3].map(async (workers) => {
      const prefix = join(folder, `many-${workers}`);
      const { code, out } = await preprocess(
        "--input",
        input,
        "--output-prefix",
        prefix,
        "--tokenizer-type",
        "BertWordPieceLowerCase",
        ...bert,
        "--split-sentences",
        "--dataset-impl",
        "lazy",
        "--workers",
        `${workers}`,
      );
      expect([code, out]).toEqual([0, expect.stringContaining(`${prefix}_text_sentence\n`)]);
      return ["bin", "idx"].map((kind) => readFileSync(`${prefix}_text_sentence.${kind}`).toString("base64"));
    });
    const [one, three] = await Promise.all(made);
    expect(three).toEqual(one);
    using data = IndexedDataset.open(join(folder, "many-1_text_sentence"));
    expect([data.format, data.documents.length]).toEqual(["cached", 501]);
    // this is line 0 . | it has two sentences ! | cafe no . | 0
    expect([...data.get(0)]).toEqual([2023, 2003, 2240, 1014, 1012]);
    expect([...data.get(2)]).toEqual([7668, 2053, 1012]);
  });

  it.each([
    [["{", ""], [], /expected one JSON object in line 1, got "\{"/],
    [[{ text: "a" }, { body: "b" }], [], /expected text under "text" in line 2, got undefined/],
    [[{ text: "a" }], ["--lang", "klingon", "--split-sentences"], /--lang of english.*got klingon/],
  ] as const)("%j is refused in one sentence, and nothing is left behind", async (lines, more, sentence) => {
    const input = corpus("wrong.jsonl", lines);
    const { code, err } = await preprocess(
      "--input",
      input,
      "--output-prefix",
      join(folder, "wrong"),
      ...gpt2,
      ...more,
    );
    expect(code).toBe(2);
    expect(err).toMatch(sentence);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(readdirSync(folder).filter((name) => name.startsWith("wrong"))).toEqual(["wrong.jsonl"]);
  });

  it("names the file that is not there, and what a tokenizer lacks", async () => {
    const missing = await preprocess(
      "--input",
      "nowhere.jsonl",
      "--output-prefix",
      join(folder, "x"),
      ...gpt2,
    );
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining("nowhere.jsonl")]);
    const input = corpus("one.jsonl", [{ text: "a" }]);
    const flags = [
      "--input",
      input,
      "--output-prefix",
      join(folder, "x"),
      "--tokenizer-type",
      "BertWordPieceCase",
    ];
    const { code, err } = await preprocess(...flags);
    expect([code, err]).toEqual([2, expect.stringContaining("--vocab-file")]);
  });
});
