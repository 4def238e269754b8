import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CharacterSet, CharacterTokenizer } from "../../src/library/data/tokenizers/character.ts";
import { HuggingFaceTokenizer } from "../../src/library/data/tokenizers/hugging-face.ts";
import {
  ByteTokenizer,
  loadGpt2Tokenizer,
  loadTokenizer,
  tokenizerFromSpec,
} from "../../src/library/data/tokenizers/load.ts";
import type { Tokenizer } from "../../src/library/data/tokenizers/tokenizer.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { miniGpt2 } from "./mini-gpt2.ts";

const vocabPath = sharedPath("data/vocab/gpt2-vocab.json");
const mergesPath = sharedPath("data/vocab/gpt2-merges.txt");
const shakespeare = sharedPath("data/tinyshakespeare/input.txt");
const isComplete = vocabPath !== undefined && mergesPath !== undefined && shakespeare !== undefined;

function code(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}

function thrownBy(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  throw new Error("expected a throw");
}

const wellFormed = fc.string({ unit: "binary", maxLength: 60 }).filter((text) => text.isWellFormed());

describe("the byte tokenizer", () => {
  test("gives any text back", () => {
    const tokenizer = new ByteTokenizer();
    fc.assert(fc.property(wellFormed, (text) => tokenizer.decode(tokenizer.encode(text)) === text));
  });

  test("reads foreign tokens and broken UTF-8 as replacement characters", () => {
    expect(new ByteTokenizer().decode([72, 105, 0xc3, 300])).toBe("Hi\uFFFD\uFFFD");
  });
});

describe("the character tokenizer", () => {
  test("numbers the characters of a text in the order of code points", () => {
    const set = new CharacterSet();
    set.add("hello ");
    set.add("wörld 🎭");
    const tokenizer = new CharacterTokenizer(set.toString());
    expect(tokenizer.spec.characters).toBe(" dehlorwö🎭");
    expect(Array.from(tokenizer.encode("hé🎭".replace("é", "ö")))).toEqual([3, 8, 9]);
    expect(tokenizer.vocabSize).toBe(10);
  });

  test("gives any text of its vocabulary back", () => {
    fc.assert(
      fc.property(wellFormed, (text) => {
        fc.pre(text.length > 0);
        const set = new CharacterSet();
        set.add(text);
        const tokenizer = new CharacterTokenizer(set.toString());
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
    );
  });

  test("names the character that its vocabulary lacks and where it stands", () => {
    const error = thrownBy(() => new CharacterTokenizer("abc").encode("abcé"));
    expect(code(error)).toBe("TOKENIZER_UNKNOWN_CHARACTER");
    expect(String(error)).toContain('"é" (U+00E9) in "abcé"');
  });

  test.each([
    ["", "empty"],
    ["aba", "repeated"],
    ["a\ud800", "half a pair"],
  ])("refuses the vocabulary %j (%s)", (characters) => {
    expect(code(thrownBy(() => new CharacterTokenizer(characters)))).toBe("TOKENIZER_INVALID");
  });

  test("widens tokens when the vocabulary passes 256", () => {
    const set = new CharacterSet();
    set.add(Array.from({ length: 300 }, (_, index) => String.fromCodePoint(0x4e00 + index)).join(""));
    expect(new CharacterTokenizer(set.toString()).encode("一")).toBeInstanceOf(Uint16Array);
  });
});

describe("a Hugging Face tokenizer", () => {
  test("encodes pieces to the tokens that the engine gives for the complete text", () => {
    const tokenizer = new HuggingFaceTokenizer(miniGpt2);
    // A post-processor that does nothing forces the other path only where the split differs: so compare with a twin
    // whose special token asks for the slow path.
    const slow = new HuggingFaceTokenizer({
      ...miniGpt2,
      added_tokens: [
        { ...miniGpt2.added_tokens[0], rstrip: false, lstrip: false, content: "<|end of text|>" },
      ],
    });
    expect(slow.legalCuts).toBe("nowhere");
    const text = fc.string({ unit: fc.constantFrom(..."the an're ll'd 12\n\t é🎭.,!?") });
    fc.assert(
      fc.property(text, (sample) => {
        expect(Array.from(tokenizer.encode(sample))).toEqual(Array.from(slow.encode(sample)));
        expect(tokenizer.decode(tokenizer.encode(sample))).toBe(sample);
      }),
    );
  });

  test("may be cut before whitespace without changing a token", () => {
    const tokenizer = new HuggingFaceTokenizer(miniGpt2);
    const text = fc.string({
      unit: fc.constantFrom(..."the an'll 12\n\t é🎭.,<|endoftext|>"),
      maxLength: 80,
    });
    fc.assert(
      fc.property(text, (sample) => {
        const parts = sample.split(/(?<=\S)(?=\s)/u);
        const encoded = parts.flatMap((part) => Array.from(tokenizer.encode(part)));
        expect(encoded).toEqual(Array.from(tokenizer.encode(sample)));
      }),
    );
  });

  test("recognises a special token in the text and adds none", () => {
    const tokenizer = new HuggingFaceTokenizer(miniGpt2);
    const end = tokenizer.vocabSize - 1;
    expect(Array.from(tokenizer.encode("<|endoftext|><|endoftext|>"))).toEqual([end, end]);
    expect(tokenizer.decode([end])).toBe("<|endoftext|>");
    expect(Array.from(tokenizer.encode(""))).toEqual([]);
  });

  test("reads tokens beyond its vocabulary as replacement characters", () => {
    const tokenizer = new HuggingFaceTokenizer(miniGpt2);
    expect(tokenizer.decode([...tokenizer.encode("the "), 9999, ...tokenizer.encode("an")])).toBe(
      "the \uFFFDan",
    );
  });

  test.each([
    [{}],
    [{ model: {}, added_tokens: [] }],
    [{ model: { type: "Nonsense", vocab: {} }, added_tokens: [] }],
  ])("refuses %j", (description) => {
    expect(code(thrownBy(() => new HuggingFaceTokenizer(description)))).toBe("TOKENIZER_INVALID");
  });
});

describe("a tokenizer specification", () => {
  test("is plain data that gives the same tokenizer back", () => {
    const tokenizers: Tokenizer[] = [
      new ByteTokenizer(),
      new CharacterTokenizer(" aehnt"),
      new HuggingFaceTokenizer(miniGpt2),
    ];
    for (const tokenizer of tokenizers) {
      const copy = tokenizerFromSpec(JSON.parse(JSON.stringify(tokenizer.spec)));
      expect(copy.vocabSize).toBe(tokenizer.vocabSize);
      expect(copy.encode("the ant")).toEqual(tokenizer.encode("the ant"));
    }
  });

  test("of an unknown kind is refused", () => {
    expect(code(thrownBy(() => tokenizerFromSpec({ kind: "sentence" } as never)))).toBe("TOKENIZER_INVALID");
  });
});

describe("loading a tokenizer", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-tokenizer-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("takes a tokenizer.json, its folder, or vocab.json with merges.txt", async () => {
    const path = join(folder, "tokenizer.json");
    await writeFile(join(folder, "vocab.json"), JSON.stringify(miniGpt2.model.vocab));
    await writeFile(join(folder, "merges.txt"), `#version: 0.2\n${miniGpt2.model.merges.join("\n")}\n`);
    const two = await loadTokenizer(folder);
    await writeFile(path, JSON.stringify(miniGpt2));
    const expected = new HuggingFaceTokenizer(miniGpt2).encode("the ant\n<|endoftext|>");
    expect(two.encode("the ant\n<|endoftext|>")).toEqual(expected);
    expect((await loadTokenizer(folder)).encode("the ant\n<|endoftext|>")).toEqual(expected);
    expect((await loadTokenizer(path)).encode("the ant\n<|endoftext|>")).toEqual(expected);
  });

  test("names the file that is missing or malformed", async () => {
    const missing = await loadTokenizer(join(folder, "nowhere")).catch((error: unknown) => error);
    expect(code(missing)).toBe("TOKENIZER_INVALID");
    expect(String(missing)).toContain("nowhere");
    await writeFile(join(folder, "broken.json"), "{");
    expect(code(await loadTokenizer(join(folder, "broken.json")).catch((error: unknown) => error))).toBe(
      "TOKENIZER_INVALID",
    );
    await writeFile(join(folder, "bad-merges.txt"), "a b c\n");
    const files = { vocabPath: join(folder, "vocab.json"), mergesPath: join(folder, "bad-merges.txt") };
    expect(code(await loadGpt2Tokenizer(files).catch((error: unknown) => error))).toBe("TOKENIZER_INVALID");
  });
});

describe.skipIf(!isComplete)("GPT-2's vocabulary", () => {
  test("encodes the published sentences and tinyshakespeare's 338,025 tokens, and gives the text back", async () => {
    const tokenizer = await loadGpt2Tokenizer({
      vocabPath: vocabPath as string,
      mergesPath: mergesPath as string,
    });
    expect(tokenizer.vocabSize).toBe(50257);
    expect(Array.from(tokenizer.encode("Hello world"))).toEqual([15496, 995]);
    expect(Array.from(tokenizer.encode("Hello, my dog is cute"))).toEqual([15496, 11, 616, 3290, 318, 13779]);
    expect(Array.from(tokenizer.encode("<|endoftext|>"))).toEqual([50256]);
    const text = readFileSync(shakespeare as string, "utf8");
    const tokens = tokenizer.encode(text);
    expect(tokens).toBeInstanceOf(Uint16Array);
    expect(tokens.length).toBe(338_025);
    expect(tokenizer.decode(tokens)).toBe(text);
  });
});
