import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { HuggingFaceTokenizer, loadTokenizer } from "../../../src/library/data/index.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-like-theirs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const plain = {
  ...{ version: "1.0", added_tokens: [], normalizer: null, pre_tokenizer: null },
  ...{ post_processor: null, decoder: null },
};
const tokenizerOf = (parts: object) => new HuggingFaceTokenizer({ ...plain, ...parts });
const idsOf = (parts: object, text: string) => [...tokenizerOf(parts).encode(text)];
const numbered = (tokens: readonly string[]) => Object.fromEntries(tokens.map((token, id) => [token, id]));

/** The pieces of a text, by a vocabulary that has those which are expected. */
function piecesOf(pre_tokenizer: object, text: string, expected: readonly string[]): string[] {
  const tokens = [...new Set(["<unk>", ...expected])];
  const model = { type: "WordLevel", vocab: numbered(tokens), unk_token: "<unk>" };
  return idsOf({ pre_tokenizer, model }, text).map((id) => tokens[id] as string);
}

// All expected values are those of Hugging Face's tokenizers 0.23.2.
describe("as Hugging Face's tokenizers", () => {
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  it.each([
    [{ type: "Whitespace" }, "café  x² a\u200Db½!?", ["café", "x", "²", "a\u200Db", "½!?"]],
    [{ type: "WhitespaceSplit" }, "a\u0085b\uFEFF c", ["a", "b\uFEFF", "c"]],
    [{ type: "Digits", individual_digits: true }, "a ½12b ٣٤", ["a ", "½", "1", "2", "b ", "٣", "٤"]],
    [{ type: "Digits", individual_digits: false }, "a ½12b ٣٤", ["a ", "½12", "b ", "٣٤"]],
    [{ type: "Punctuation" }, "the?! $b。", ["the", "?", "!", " ", "$", "b", "。"]],
    [{ type: "Punctuation", behavior: "Contiguous" }, "?the!!", ["?", "the", "!!"]],
    [
      { type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits: true }, byteLevel] },
      "a ½",
      ["a", "Ġ", "Â½"],
    ],
  ])("cuts texts into words by %o", (step, text, expected) => {
    expect(piecesOf(step, text, expected)).toEqual(expected);
  });

  it.each([
    ["Isolated", ["a", "-", "b", "-", "-", "c"], ["a", "-", "b", "-", "-", "c"]],
    ["Removed", ["a", "b", "c"], ["-", "-", "-"]],
    ["MergedWithPrevious", ["a-", "b-", "-", "c"], ["a", "-b", "-", "-c"]],
    ["MergedWithNext", ["a", "-b", "-", "-c"], ["a-", "b-", "-", "c"]],
    ["Contiguous", ["a", "-", "b", "--", "c"], ["a", "-", "b", "--", "c"]],
  ])("cuts by a pattern, %s and inverted", (behavior, expected, inverted) => {
    for (const pattern of [{ Regex: "[-]" }, { String: "-" }]) {
      const split = { type: "Split", pattern, behavior, invert: false };
      expect(piecesOf(split, "a-b--c", expected)).toEqual(expected);
      expect(piecesOf({ ...split, invert: true }, "a-b--c", inverted)).toEqual(inverted);
    }
  });

  it("spells what Unigram does not know by its bytes, if the vocabulary has all", () => {
    const tokens = ["<unk>", "\u2581", "a", "<0xC3>", "<0xA9>"];
    const pre_tokenizer = { type: "Metaspace", replacement: "\u2581", prepend_scheme: "always", split: true };
    const ids = (text: string, byte_fallback: boolean) => {
      const model = {
        type: "Unigram",
        unk_id: 0,
        byte_fallback,
        vocab: tokens.map((token, id) => [token, -id]),
      };
      return idsOf({ pre_tokenizer, model }, text);
    };
    expect(ids("aé", true)).toEqual([1, 2, 3, 4]);
    expect(ids("éé ßé", true)).toEqual([1, 3, 4, 3, 4, 1, 0]);
    expect(ids("éé", false)).toEqual([1, 0]);
  });

  it("makes one unknown token of neighbours in a word, not of words", () => {
    const pre_tokenizer = { type: "WhitespaceSplit" };
    const bpe = { type: "BPE", vocab: { "<unk>": 0, a: 1 }, merges: [], unk_token: "<unk>", fuse_unk: true };
    expect(idsOf({ pre_tokenizer, model: bpe }, "xya xy xy ")).toEqual([0, 1, 0, 0]);
    const unigram = {
      type: "Unigram",
      unk_id: 0,
      vocab: [
        ["<unk>", 0],
        ["a", -1],
      ],
    };
    expect(idsOf({ pre_tokenizer, model: unigram }, "xya xy xy ")).toEqual([0, 1, 0, 0]);
  });

  it("gives unknown words of WordLevel its unk_token, and refuses them where there is none", () => {
    const words = (unk_token: string) => ({
      pre_tokenizer: { type: "Whitespace" },
      model: { type: "WordLevel", vocab: { cat: 0, "[UNK]": 1 }, unk_token },
    });
    expect(idsOf(words("[UNK]"), "cat dog")).toEqual([0, 1]);
    expect(idsOf(words("<unk>"), "cat")).toEqual([0]);
    expect(() => idsOf(words("<unk>"), "cat dog")).toThrow(
      'a token for unknown text in model.vocab, got none for "dog"',
    );
  });

  it.each([
    [
      "a prefix of BPE's later tokens",
      { model: { type: "BPE", vocab: { a: 0 }, merges: [], continuing_subword_prefix: "##" } },
      "model.continuing_subword_prefix: empty for BPE",
    ],
    [
      "an added token that is a word of its own",
      { added_tokens: [{ id: 0, content: "a", single_word: true }] },
      "added_tokens[0].single_word: false",
    ],
    [
      "an unknown behavior",
      { pre_tokenizer: { type: "Split", pattern: { String: "-" }, behavior: "Doubled", invert: false } },
      "pre_tokenizer.behavior",
    ],
  ])("or refuses: %s", (_, parts, words) => {
    const model = { type: "BPE", vocab: { a: 0 }, merges: [] };
    expect(() => tokenizerOf({ model, ...parts })).toThrow(
      expect.objectContaining({ code: "TOKENIZER_INVALID", message: expect.stringContaining(words) }),
    );
  });

  it("keeps accents and Chinese words of a vocab.txt where its tokenizer_config.json says so", async () => {
    writeFileSync(
      join(folder, "vocab.txt"),
      "[UNK]\ncafé\ncafe\n日本\n日\n本\n[PAD]\n[CLS]\n[SEP]\n[MASK]\n",
    );
    const ids = async (settings: object) => {
      writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify(settings));
      return [...(await loadTokenizer(folder)).encode("Café 日本")];
    };
    expect(await ids({ do_lower_case: true })).toEqual([2, 4, 5]);
    expect(await ids({ do_lower_case: true, strip_accents: false })).toEqual([1, 4, 5]);
    expect(await ids({ strip_accents: null, tokenize_chinese_chars: false })).toEqual([2, 3]);
  });
});
