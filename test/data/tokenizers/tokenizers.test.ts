import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  HuggingFaceTokenizer,
  joinTexts,
  loadTokenizer,
  type Span,
  type Truncation,
} from "../../../src/library/data/index.ts";
import { sharedPath } from "../../fixtures/shared.ts";

// A python that has Hugging Face's tokenizers. Skipped where the environment names none.
const python = process.env.TROUPE_PYTHON;
const data = sharedPath("data");
/** Seed that chooses the lines from texts and the made-up ones. */
const seed = process.env.TROUPE_TOKENIZERS_SEED ?? "7";

interface Row {
  readonly ids: readonly number[];
  readonly offsets: readonly Span[];
}

interface Pair extends Partial<Row> {
  readonly first: number;
  readonly second: number;
  readonly strategy: string;
  readonly length: number;
  readonly types?: readonly number[];
  readonly special?: readonly number[];
  readonly error?: string;
}

describe.skipIf(python === undefined || data === undefined)("beside Hugging Face's tokenizers", () => {
  let directory: string;
  let lines: readonly string[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "troupe-tokenizers-"));
    const script = new URL("make.py", import.meta.url).pathname;
    await promisify(execFile)(python as string, [script, data as string, directory, seed]);
    lines = JSON.parse(await readFile(join(directory, "lines.json"), "utf8"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  /** Each kind that make.py wrote: its tokenizer and what theirs made of the lines. */
  async function* kinds() {
    for (const kind of (await readdir(directory)).filter((name) => !name.endsWith(".json"))) {
      const folder = join(directory, kind);
      const tokenizer = (await loadTokenizer(folder)) as HuggingFaceTokenizer;
      const oracle = JSON.parse(await readFile(join(folder, "oracle.json"), "utf8"));
      yield { kind, tokenizer, ...(oracle as { rows: readonly Row[]; pairs: readonly Pair[] }) };
    }
  }

  it("makes the same tokens of 10,000 lines, by WordPiece, byte-level BPE, BPE with bytes and unigram", async () => {
    const found: Record<string, readonly string[]> = {};
    for await (const { kind, tokenizer, rows } of kinds())
      found[kind] = lines.filter((line, i) => [...tokenizer.encode(line)].join() !== rows[i]?.ids.join());
    expect(Object.keys(found).length).toBeGreaterThanOrEqual(7);
    expect(new Set(Object.values(found).flat())).toEqual(new Set());
  });

  it("says of every token where it stands", async () => {
    for await (const { kind, tokenizer, rows } of kinds()) {
      for (let i = 0; i < lines.length; i++) {
        const line = lines[i] as string;
        // Theirs count characters, ours UTF-16 units.
        const units = [0];
        for (const character of line) units.push((units.at(-1) as number) + character.length);
        const { spans } = tokenizer.encodeWithSpans(line);
        const expected = rows[i]?.offsets.map(([begin, end]) => [units[begin], units[end]]);
        expect(spans, `${kind}: ${line}`).toEqual(expected);
      }
    }
  });

  it("joins and cuts pairs as they do, and refuses what they refuse", async () => {
    let numCut = 0;
    for await (const { kind, tokenizer, pairs, rows } of kinds()) {
      for (const pair of pairs) {
        const texts = [lines[pair.first], lines[pair.second]] as [string, string];
        const truncation = pair.strategy.replaceAll("_", "-") as Truncation;
        const joined = () => joinTexts(tokenizer, texts, { mostTokens: pair.length, truncation });
        const label = `${kind}, ${truncation} ${pair.length}: ${texts.join(" | ")}`;
        if (pair.error !== undefined) {
          expect(joined, label).toThrow("[joinTexts] expected texts that fit");
          continue;
        }
        const { ids, types, sources } = joined();
        // Their encoders stop at the end of the word with which a text alone fills the row: who of two such texts has the odd token
        // hangs on that word.
        const fill = [pair.first, pair.second].every((line) => (rows[line]?.ids.length ?? 0) >= pair.length);
        if (fill && truncation === "longest-first") {
          expect(ids.length, label).toBe(pair.ids?.length);
          continue;
        }
        numCut++;
        expect({ ids, types }, label).toEqual({ ids: pair.ids, types: pair.types });
        expect(
          sources.map((source) => Number(source === undefined)),
          label,
        ).toEqual(pair.special);
      }
    }
    expect(numCut).toBeGreaterThan(5000);
  });
});

/** A WordPiece of a few words. */
function words(postProcessor: object | null): HuggingFaceTokenizer {
  const tokens = ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat", "on", "mat", ","];
  return new HuggingFaceTokenizer({
    added_tokens: [],
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: postProcessor,
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
    },
  });
}

describe("joinTexts", () => {
  const bert = { type: "BertProcessing", cls: ["[CLS]", 1], sep: ["[SEP]", 2] };
  const roberta = { type: "RobertaProcessing", cls: ["[CLS]", 1], sep: ["[SEP]", 2] };

  it("puts the tokenizer's own tokens around one text and between two, with their types", () => {
    expect(joinTexts(words(bert), ["the cats"])).toEqual({
      ids: [1, 3, 4, 5, 2],
      types: [0, 0, 0, 0, 0],
      sources: [undefined, 0, 0, 0, undefined],
      spans: [
        [0, 0],
        [0, 3],
        [4, 7],
        [7, 8],
        [0, 0],
      ],
    });
    const { ids, types } = joinTexts(words(bert), ["cat", "mat"]);
    expect([ids, types]).toEqual([
      [1, 4, 2, 8, 2],
      [0, 0, 0, 1, 1],
    ]);
    expect(joinTexts(words(roberta), ["cat", "mat"]).ids).toEqual([1, 4, 2, 2, 8, 2]);
    expect(joinTexts(words(null), ["cat", "mat"]).types).toEqual([0, 1]);
    expect(joinTexts(words(bert), ["cat", "mat"], { specialTokens: false }).ids).toEqual([4, 8]);
  });

  it("says where an unknown word, a word with accents and one behind emoji stand, in units that slice takes", () => {
    const text = "The  dôg, 😀 çat";
    const { spans, ids } = words(null).encodeWithSpans(text);
    expect(ids).toEqual([3, 0, 9, 0, 4]);
    expect(spans.map(([begin, end]) => text.slice(begin, end))).toEqual(["The", "dôg", ",", "😀", "çat"]);
  });

  it("says of an unknown word where it begins and ends, of marks only what its tokens have, and of special tokens all", () => {
    const { added_tokens: _, ...rest } = words(null).spec.tokenizer;
    const tokenizer = new HuggingFaceTokenizer({
      ...rest,
      added_tokens: [{ id: 2, content: "[SEP]", special: true }],
    });
    const text = "I\u00B4m\u0000x cA\u0301ts\u0301[SEP]\u0301 \u3010the";
    const { spans, ids } = tokenizer.encodeWithSpans(text);
    expect(ids).toEqual([0, 4, 5, 2, 0, 3]);
    expect(spans.map(([begin, end]) => text.slice(begin, end))).toEqual([
      ...["I\u00B4m\u0000x", "cA\u0301t", "s", "[SEP]", "\u3010", "the"],
    ]);
  });

  it("says of bytes which character they are of, and of the space in front of a text that it is its first one's", () => {
    const tokens = ["<unk>", "\u2581", "\u2581a", "\u2581\u2581", "e", "\u0301", "<0xC3>", "<0x9F>"];
    const tokenizer = new HuggingFaceTokenizer({
      ...{ version: "1.0", added_tokens: [], pre_tokenizer: null, post_processor: null, decoder: null },
      normalizer: {
        type: "Sequence",
        normalizers: [
          { type: "Prepend", prepend: "\u2581" },
          { type: "Replace", pattern: { String: " " }, content: "\u2581" },
        ],
      },
      model: {
        type: "BPE",
        vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
        merges: [
          ["\u2581", "\u2581"],
          ["\u2581", "a"],
        ],
        unk_token: "<unk>",
        byte_fallback: true,
      },
    });
    const spans = (text: string) => tokenizer.encodeWithSpans(text).spans;
    // Tokens: two spaces; e; its accent; two bytes of one letter.
    expect(spans(" e\u0301\u00DF").join(" ")).toBe("0,1 1,2 2,3 3,4 3,4");
    expect(spans("e").join(" ")).toBe("0,1 0,1");
  });

  it("says of composed, spread and put in letters what they were made of, behind NFKC, Nmt and SentencePiece's tables", () => {
    const letters = ["<unk>", "\u2581", "\u1EC7", "x", "f", "i", "a", "b", "\u0323"];
    const spelled = (text: string, ...normalizers: object[]) => {
      const tokenizer = new HuggingFaceTokenizer({
        ...{ version: "1.0", added_tokens: [], decoder: null, post_processor: null },
        normalizer: { type: "Sequence", normalizers },
        pre_tokenizer: { type: "Metaspace", replacement: "\u2581", prepend_scheme: "always", split: true },
        model: { type: "Unigram", unk_id: 0, vocab: letters.map((letter, id) => [letter, -id]) },
      });
      const { ids, spans } = tokenizer.encodeWithSpans(text);
      return ids.map((id, index) => `${letters[id]} ${spans[index]}`);
    };
    // A circumflex before the dot moves behind it; both join the letter, and the result has the letter's place.
    expect(spelled("e\u0302\u0323x \uFB01", { type: "NFKC" })).toEqual([
      ...["\u2581 0,1", "\u1EC7 0,1", "x 3,4", "\u2581 4,5", "f 5,6", "i 5,6"],
    ]);
    // If there are two dots, the first joins.
    expect(spelled("e\u0302\u0323\u0323", { type: "NFC" })).toEqual([
      "\u2581 0,1",
      "\u1EC7 0,1",
      "\u0323 3,4",
    ]);
    expect(spelled("a\u0001\u200Bb", { type: "Nmt" })).toEqual([
      "\u2581 0,1",
      "a 0,1",
      "\u2581 2,3",
      "b 3,4",
    ]);
    // "a" becomes "fi", "ab" is not looked for where "a" is found, "x" is dropped: a trie of four units and what stands for them.
    const place = (letter: string) => 1 ^ letter.charCodeAt(0);
    const units = new Uint32Array(512);
    units[0] = 1 << 10;
    for (const [letter, base, replacement] of [
      ["a", 256, 0],
      ["x", 300, 3],
    ] as const) {
      units[place(letter)] = letter.charCodeAt(0) | (base << 10) | 0x100;
      units[place(letter) ^ base] = 0x80000000 | replacement;
    }
    const head = Buffer.alloc(4);
    head.writeUInt32LE(units.byteLength);
    const table = Buffer.concat([head, Buffer.from(units.buffer), Buffer.from("fi\0\0")]).toString("base64");
    const charsmap = { type: "Precompiled", precompiled_charsmap: table };
    expect(spelled("bxab", charsmap)).toEqual([...["\u2581 0,1", "b 0,1", "f 2,3", "i 2,3", "b 3,4"]]);
  });

  it("strips Unicode's white space from the ends of a text, not JavaScript's", () => {
    const model = { type: "Unigram", unk_id: 0, byte_fallback: false };
    const vocab = ["<unk>", "\u2581", "a", "\u2581a"].map((token, id) => [token, -id]);
    const tokenizer = new HuggingFaceTokenizer({
      ...{ version: "1.0", added_tokens: [], decoder: null, post_processor: null },
      normalizer: {
        type: "Sequence",
        normalizers: [{ type: "Strip", strip_left: false, strip_right: true }],
      },
      pre_tokenizer: { type: "Metaspace", replacement: "\u2581", prepend_scheme: "always", split: true },
      model: { ...model, vocab },
    });
    const ids = (text: string) => [...tokenizer.encode(text)];
    expect(ids("a \u0085\u3000")).toEqual([3]);
    expect(ids("a\n")).toEqual([3]);
    expect(ids("a \ufeff ")).toEqual([3, 1, 0]);
    expect(ids("a \n a")).toEqual([3, 1, 0, 3]);
  });

  it("truncates the sequences that its options name, and throws if those are too short", () => {
    const cut = (mostTokens: number, truncation: Truncation) =>
      joinTexts(words(null), ["the cat sat on", "the mat"], { mostTokens, truncation }).sources.join("");
    expect(cut(5, "longest-first")).toBe("00011");
    expect(cut(3, "longest-first")).toBe("001");
    expect(cut(5, "only-first")).toBe("00011");
    expect(cut(5, "only-second")).toBe("00001");
    expect(() => cut(4, "only-second")).toThrow(
      '[joinTexts] expected texts that fit 4 tokens by "only-second", got 4 and 2 (allow more tokens, or another truncation)',
    );
    expect(() => cut(5, "refuse")).toThrow("expected texts that fit 5 tokens, got 4 and 2");
  });
});
