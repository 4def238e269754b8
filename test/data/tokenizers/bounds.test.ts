import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { HuggingFaceTokenizer, loadTokenizer } from "../../../src/library/data/index.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { miniGpt2 } from "../mini-gpt2.ts";

const plain = {
  version: "1.0",
  added_tokens: [],
  normalizer: null as unknown,
  pre_tokenizer: null as unknown,
  post_processor: null,
  decoder: null as unknown,
  model: { type: "BPE", vocab: { a: 0, b: 1, " ": 2 }, merges: [], unk_token: "b" },
};
const replace = (source: string, content: string) => ({
  type: "Replace",
  pattern: { Regex: source },
  content,
});
const encoding = (part: object, text: string) => () =>
  new HuggingFaceTokenizer({ ...plain, ...part }).encode(text).length;
const invalid = (words: string) =>
  expect.objectContaining({ code: "TOKENIZER_INVALID", message: expect.stringContaining(words) });

describe("an untrusted tokenizer.json", () => {
  const text = "a".repeat(5_000);

  it("an untrusted tokenizer.json has its patterns matched in linear time, as normalizer, pre-tokenizer and decoder", () => {
    for (const source of ["(a+)+$", "(a|a)*b", "(a|aa)+$"]) {
      const step = replace(source, "b");
      const split = { type: "Split", pattern: { Regex: source }, behavior: "Isolated", invert: false };
      const tokenizer = new HuggingFaceTokenizer({
        ...plain,
        normalizer: step,
        pre_tokenizer: split,
        decoder: step,
      });
      expect(tokenizer.encode(`${text}b`).length).toBeGreaterThan(0);
      expect(tokenizer.decode([0, 1])).toEqual(expect.any(String));
    }
  });

  it("is refused by name where a pattern cannot be matched so, or a step makes a text many times as long", () => {
    expect(encoding({ normalizer: replace("(a)\\1", "") }, text)).toThrow(invalid("linear time"));
    const tenfold = Array.from({ length: 12 }, () => ({
      type: "Replace",
      pattern: { String: "a" },
      content: "a".repeat(10),
    }));
    for (const part of [
      { normalizer: { type: "Sequence", normalizers: tenfold } },
      { normalizer: { type: "Sequence", normalizers: [{ type: "Lowercase" }, ...tenfold] } },
      { pre_tokenizer: { type: "Sequence", pretokenizers: tenfold } },
    ])
      expect(encoding(part, text)).toThrow(invalid("a tokenizer that makes at most 32 characters of each"));
    expect(
      encoding({ normalizer: { type: "Replace", pattern: { String: "a" }, content: "$`" } }, text)(),
    ).toBe(10_000);
  });

  it.each([
    ["null", null, "a tokenizer.json: an object, got null"],
    ["a model of null", { ...plain, model: null }, "model: an object, got null"],
    [
      "a length of 0",
      { ...plain, pre_tokenizer: { type: "FixedLength", length: 0 } },
      "length: a whole number ≥ 1",
    ],
    ["an id of a billion", { ...plain, added_tokens: [{ id: 1e9, content: "x" }] }, "added_tokens[0].id"],
    ["a token that is none", { ...plain, added_tokens: [null] }, "added_tokens[0]: an object"],
    [
      "a table beyond its bytes",
      { ...plain, normalizer: { type: "Precompiled", precompiled_charsmap: "/////w==" } },
      "precompiled_charsmap",
    ],
    ["a step of the language's own name", { ...plain, normalizer: { type: "constructor" } }, "constructor"],
    [
      "words of a million characters",
      {
        ...plain,
        model: { type: "WordPiece", vocab: { a: 0 }, unk_token: "a", max_input_chars_per_word: 1e6 },
      },
      "max_input_chars_per_word",
    ],
  ])("is refused in words where it is, or has, %s", (_what, tokenizer, words) => {
    expect(() => new HuggingFaceTokenizer(tokenizer as never)).toThrow(invalid(words));
  });

  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("is read where it is a regular file, and refused at once where it is a pipe or a device", async () => {
    const folder = workspace.path("tokenizer");
    mkdirSync(folder, { recursive: true });
    const place = (name: string) => join(folder, `${name}.json`);
    writeFileSync(place("good"), JSON.stringify(miniGpt2));
    execFileSync("mkfifo", [place("pipe")]);
    symlinkSync("/dev/zero", place("device"));
    writeFileSync(place("deep"), "[".repeat(100_000));
    expect((await loadTokenizer(place("good"))).encode("the").length).toBe(1);
    await expect(loadTokenizer(place("pipe"))).rejects.toThrow(invalid("a pipe, no regular file"));
    await expect(loadTokenizer(place("device"))).rejects.toThrow(invalid("a device, no regular file"));
    await expect(loadTokenizer(place("deep"))).rejects.toThrow(invalid("more than 64 levels"));
  });
});
